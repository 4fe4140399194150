#include "tests/bench/bare_host.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "protocol/base/check.h"
#include "protocol/function_rpc/peek.h"
#include "schema/proto/function_rpc.pb.h"

namespace windlass::bench {
namespace {

constexpr std::size_t kIdBytes = 36;  // as many as the runtime's ids have

std::string_view view_of(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

}  // namespace

std::string read_pem_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  CHECK(!text.empty());
  return text;
}

std::vector<std::string> native_worker_command(std::uint16_t port) {
  return {WINDLASS_NATIVE_WORKER,
          "--host",
          "127.0.0.1",
          "--port",
          std::to_string(port),
          "--workerId",
          "bench.1",
          "--requestId",
          "bench",
          "--grpcMaxMessageLength",
          "134217728"};
}

BareHost::BareHost(const Identity& identity) {
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs.push_back(
      {read_pem_file(identity.files.key), read_pem_file(identity.files.certificate)});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(ssl), &port);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr && port != 0);
  service_.RequestCall(&context_, &call_, queue_.get(), queue_.get(), &stream_.opened);
  thread_ = std::thread{[this] { serve(); }};
  relay_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      "/proc/self/exe", "--bare-relay", std::to_string(port), identity.authority.certificate_file()});
  const auto relay_port = static_cast<std::uint16_t>(std::atoi(relay_->read_line().c_str()));
  worker_ = std::make_unique<ChildProcess>(native_worker_command(relay_port));
  for (int i = 0; !is_ready_; ++i) {
    CHECK(i < 20'000);
    std::this_thread::sleep_for(milliseconds{1});
  }
}

BareHost::~BareHost() {
  worker_.reset();
  relay_.reset();
  server_->Shutdown(std::chrono::system_clock::now());
  queue_->Shutdown();
  thread_.join();
}

void BareHost::serve() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    const std::lock_guard lock{mutex_};
    handle(*static_cast<BareStream::Tag*>(tag), ok);
    while (queue_->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) ==
           grpc::CompletionQueue::GOT_EVENT) {
      handle(*static_cast<BareStream::Tag*>(tag), ok);
    }
    stream_.flush();
  }
}

void BareHost::handle(const BareStream::Tag& tag, bool ok) {
  if (!ok) return;  // it ends
  switch (tag.event) {
    case BareStream::Event::Opened:
      return stream_.begin();
    case BareStream::Event::Read:
      return take(stream_.take());
    case BareStream::Event::Written:
      return stream_.handle_written();
  }
}

void BareHost::take(const grpc::ByteBuffer& message) {
  grpc::Slice slice;
  CHECK(message.DumpToSingleSlice(&slice).ok());
  const auto peeked = function_rpc::peek(view_of(slice));
  CHECK(peeked.has_value());
  if (peeked->content == function_rpc::Content::InvocationResponse) {
    CHECK(slice.size() > kPayloadBytes && peeked->invocation_id.size() == kIdBytes);
    std::uint64_t tag = 0;
    std::from_chars(peeked->invocation_id.data(), peeked->invocation_id.data() + kIdBytes, tag);
    on_answer(tag);
  } else if (peeked->content == function_rpc::Content::StartStream) {
    AzureFunctionsRpcMessages::StreamingMessage init;
    init.mutable_worker_init_request()->set_function_app_directory(WINDLASS_ECHO_APP);
    const grpc::Slice bytes{init.SerializeAsString()};
    stream_.push(grpc::ByteBuffer{&bytes, 1});
  } else if (peeked->content == function_rpc::Content::WorkerInitResponse) {
    is_ready_ = true;
  }
}

void BareHost::perform(std::function<void()> work) {
  const std::lock_guard lock{mutex_};
  work();
  stream_.flush();
}

void BareHost::invoke(std::uint64_t tag) {
  char id[kIdBytes + 1];
  std::snprintf(id, sizeof id, "%036llu", static_cast<unsigned long long>(tag));
  std::string head;
  std::string ids;
  function_rpc::append_bytes(ids, 1, {id, kIdBytes});
  function_rpc::append_bytes(ids, 2, kEchoFunction);
  function_rpc::append_head(head, static_cast<std::uint32_t>(function_rpc::Content::InvocationRequest),
                            ids.size() + body_.size());
  grpc::Slice slice(head.size() + ids.size() + body_.size());
  auto* to = const_cast<std::uint8_t*>(slice.begin());
  std::memcpy(to, head.data(), head.size());
  std::memcpy(to + head.size(), ids.data(), ids.size());
  std::memcpy(to + head.size() + ids.size(), body_.data(), body_.size());
  stream_.push(grpc::ByteBuffer{&slice, 1});
}

}  // namespace windlass::bench
