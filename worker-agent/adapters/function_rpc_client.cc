#include "worker-agent/adapters/function_rpc_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "worker-agent/adapters/files.h"

namespace windlass::agent {

// Says that the stream carries one worker after another and their applications.
constexpr const char* kAgentMetadata = "windlass-agent";

// Lives in the client's list until its last operation ended.
struct ClientCall {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  RpcTag opened{RpcTag::Kind::Opened, this};
  RpcTag read{RpcTag::Kind::Read, this};
  RpcTag written{RpcTag::Kind::Written, this};
  RpcTag finished{RpcTag::Kind::Finished, this};
  std::unique_ptr<RpcStream> pump;
  grpc::Status status;
  bool is_open = false;  // guarded by the client's mutex, as what follows
  bool is_finishing = false;
  std::optional<std::string> over;
};

struct FunctionRpcClient::Inside {
  RpcClientOptions options;
  std::function<void()> wake;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::CompletionQueue queue;
  std::thread thread;

  std::mutex mutex;  // of what follows
  std::list<std::shared_ptr<ClientCall>> calls;
  std::shared_ptr<ClientCall> current;  // shared, since the loop may send while the stream ends
  bool is_closing = false;

  void serve() {
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
      const auto& told = *static_cast<RpcTag*>(tag);
      auto& call = *static_cast<ClientCall*>(told.call);
      switch (told.kind) {
        case RpcTag::Kind::Opened:
          handle_opened(call, ok);
          break;
        case RpcTag::Kind::Read:
          if (call.pump->handle_read(ok)) finish(call);
          break;
        case RpcTag::Kind::Written:
          if (call.pump->handle_written(ok)) finish(call);
          break;
        case RpcTag::Kind::Finished:
          handle_finished(call);
          break;
      }
    }
  }

  void handle_opened(ClientCall& call, bool ok) {
    if (!ok) return finish(call);
    {
      const std::lock_guard lock{mutex};
      call.is_open = true;
    }
    call.pump->start_reading();
    wake();
  }

  void finish(ClientCall& call) {
    {
      const std::lock_guard lock{mutex};
      if (std::exchange(call.is_finishing, true)) return;
    }
    call.stream->Finish(&call.status, &call.finished);
  }

  void handle_finished(ClientCall& call) {
    {
      const std::lock_guard lock{mutex};
      call.over = call.status.ok() ? "the runtime ended the stream" : call.status.error_message();
      if (call.over->empty()) call.over = "gRPC status " + std::to_string(call.status.error_code());
      calls.remove_if([&](const auto& each) { return each.get() == &call; });
      shut_down_if_last();
    }
    wake();
  }

  // With mutex held. A queue that is shut down takes no operation, not even the one that ends a call.
  void shut_down_if_last() {
    if (is_closing && calls.empty()) queue.Shutdown();
  }

  // One that is not open yet, or reads or writes, is told of the end by what it waits for.
  void end(ClientCall& call) {
    call.context.TryCancel();
    bool is_open = false;
    {
      const std::lock_guard lock{mutex};
      is_open = call.is_open;
    }
    if (is_open && call.pump->end()) finish(call);
  }

  void close() {
    std::list<std::shared_ptr<ClientCall>> last;
    {
      const std::lock_guard lock{mutex};
      is_closing = true;
      current.reset();
      last = calls;
      shut_down_if_last();
    }
    for (const auto& call : last) end(*call);
  }

  std::shared_ptr<ClientCall> open_call() {
    const std::lock_guard lock{mutex};
    return current && current->is_open ? current : nullptr;
  }
};

Result<std::unique_ptr<FunctionRpcClient>> FunctionRpcClient::create(const RpcClientOptions& options,
                                                                     std::function<void()> wake) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.tls) {
    grpc::SslCredentialsOptions ssl;
    for (const auto& [path, into] : {std::pair{&options.tls->authority_file, &ssl.pem_root_certs},
                                     std::pair{&options.tls->key_file, &ssl.pem_private_key},
                                     std::pair{&options.tls->certificate_file, &ssl.pem_cert_chain}}) {
      if (path->empty()) continue;
      auto text = read_all(*path);
      if (!text) return text.error();
      *into = *text;
    }
    credentials = grpc::SslCredentials(ssl);
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  arguments.SetMaxSendMessageSize(static_cast<int>(options.message_bytes_max));
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  auto inside = std::make_unique<Inside>();
  inside->options = options;
  inside->wake = std::move(wake);
  const bool is_v6 = options.host.find(':') != std::string::npos;
  const std::string target =
      (is_v6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
  inside->channel = grpc::CreateCustomChannel(target, credentials, arguments);
  inside->stub = std::make_unique<grpc::GenericStub>(inside->channel);
  inside->thread = std::thread{[raw = inside.get()] { raw->serve(); }};
  return std::unique_ptr<FunctionRpcClient>{new FunctionRpcClient{std::move(inside)}};
}

FunctionRpcClient::FunctionRpcClient(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

FunctionRpcClient::~FunctionRpcClient() {
  inside_->close();
  inside_->thread.join();
}

void FunctionRpcClient::dial(const std::string& token) {
  auto call = std::make_shared<ClientCall>();
  call->context.set_wait_for_ready(false);
  call->context.AddMetadata(kAgentMetadata, "1");
  if (!token.empty()) call->context.AddMetadata("authorization", "Bearer " + token);
  call->stream = inside_->stub->PrepareCall(&call->context, kEventStream, &inside_->queue);
  call->pump = std::make_unique<RpcStream>(*call->stream, *call->stream, &call->read, &call->written,
                                           inside_->options.bounds, inside_->wake);
  const std::lock_guard lock{inside_->mutex};
  inside_->calls.push_back(call);
  inside_->current = call;
  call->stream->StartCall(&call->opened);
}

FunctionRpcClient::Polled FunctionRpcClient::poll() {
  Polled polled;
  std::shared_ptr<ClientCall> call;
  {
    const std::lock_guard lock{inside_->mutex};
    if (!inside_->current) return polled;
    call = inside_->current;
    polled.is_open = call->is_open;
    polled.over = call->over;
    if (polled.over) inside_->current.reset();
  }
  call->pump->take(polled.messages);
  return polled;
}

void FunctionRpcClient::consumed(std::size_t bytes) {
  if (const auto call = inside_->open_call()) call->pump->consumed(bytes);
}

bool FunctionRpcClient::send(std::string_view message) {
  const auto call = inside_->open_call();
  return call && call->pump->send(message);
}

void FunctionRpcClient::flush() {
  if (const auto call = inside_->open_call()) call->pump->flush();
}

bool FunctionRpcClient::is_full() const {
  const auto call = inside_->open_call();
  return call && call->pump->is_full();
}

std::size_t FunctionRpcClient::waiting_messages() const {
  const auto call = inside_->open_call();
  return call ? call->pump->waiting_messages() : 0;
}

}  // namespace windlass::agent
