// The relay between a BareHost and a worker: messages of one stream go to the other as they are.
#include <grpcpp/generic/generic_stub.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "protocol/base/check.h"
#include "tests/bench/bare_host.h"

namespace windlass::bench {
namespace {

class BareRelay final {
 public:
  BareRelay(const std::string& host_port, const std::string& authority_file) {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = read_pem_file(authority_file);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + host_port, grpc::SslCredentials(ssl), arguments);
    stub_ = std::make_unique<grpc::GenericStub>(channel_);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    CHECK(server_ != nullptr && port_ != 0);
    service_.RequestCall(&server_context_, &worker_call_, queue_.get(), queue_.get(), &worker_.opened);
  }

  int port() const { return port_; }

  // Until one of both is gone.
  void run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
      if (!handle(*static_cast<BareStream::Tag*>(tag), ok)) return;
      while (queue_->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) ==
             grpc::CompletionQueue::GOT_EVENT) {
        if (!handle(*static_cast<BareStream::Tag*>(tag), ok)) return;
      }
      worker_.flush();
      if (host_) host_->flush();
    }
  }

 private:
  bool handle(const BareStream::Tag& tag, bool ok) {
    if (!ok) return false;
    switch (tag.event) {
      case BareStream::Event::Opened:
        if (tag.stream == &worker_) {
          host_call_ = stub_->PrepareCall(&client_context_, kEventStreamMethod, queue_.get());
          host_ = std::make_unique<BareStream>(*host_call_);
          host_call_->StartCall(&host_->opened);
        }
        tag.stream->begin();
        return true;
      case BareStream::Event::Read:
        (tag.stream == &worker_ ? *host_ : worker_).push(tag.stream->take());
        return true;
      case BareStream::Event::Written:
        tag.stream->handle_written();
        return true;
    }
    return true;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::ClientContext client_context_;
  grpc::AsyncGenericService service_;
  grpc::GenericServerContext server_context_;
  grpc::GenericServerAsyncReaderWriter worker_call_{&server_context_};
  BareStream worker_{worker_call_};
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> host_call_;
  std::unique_ptr<BareStream> host_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace

bool plays_bare_relay(int argc, char** argv) {
  if (argc != 4 || std::string_view{argv[1]} != "--bare-relay") return false;
  BareRelay relay{argv[2], argv[3]};
  std::fprintf(stderr, "%d\n", relay.port());
  relay.run();
  std::_Exit(0);  // gRPC wants its streams ended with care, which nobody waits for
}

}  // namespace windlass::bench
