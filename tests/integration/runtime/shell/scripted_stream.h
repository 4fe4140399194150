// A worker that dials in over gRPC by itself; a script answers for it. Own thread.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <thread>

#include "tests/integration/runtime/shell/worker_script.h"

namespace windlass::testing {

class ScriptedStream final {
 public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;
  // `first` is sent at once.
  ScriptedStream(
      std::uint16_t port, const std::string& first,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials = grpc::InsecureChannelCredentials(),
      const Metadata& metadata = {}) {
    for (const auto& [name, value] : metadata) context_.AddMetadata(name, value);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // each dials by itself
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), credentials, arguments);
    method_ =
        std::make_unique<grpc::internal::RpcMethod>("/AzureFunctionsRpcMessages.FunctionRpc/EventStream",
                                                    grpc::internal::RpcMethod::BIDI_STREAMING, channel_);
    stream_.reset(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
        channel_.get(), *method_, &context_));
    write(first);
    thread_ = std::jthread{[this] { serve(); }};
  }
  ~ScriptedStream() {
    set_deaf(false);
    context_.TryCancel();
  }

  // Until the host ended the stream.
  grpc::Status wait_for_end() {
    thread_.join();
    return status_;
  }

  // False: the stream is over.
  bool write(const std::string& bytes) {
    const grpc::Slice slice{bytes};
    return stream_->Write(grpc::ByteBuffer{&slice, 1});
  }
  // From the next message on it reads no more, until it hears again.
  void set_deaf(bool is_deaf) {
    is_deaf_ = is_deaf;
    is_deaf_.notify_all();
  }

  bool is_over() const { return is_over_; }

  WorkerScript script;

 private:
  void serve() {
    grpc::ByteBuffer incoming;
    while (stream_->Read(&incoming)) {
      grpc::Slice slice;
      if (!incoming.DumpToSingleSlice(&slice).ok()) break;
      const std::string_view bytes{reinterpret_cast<const char*>(slice.begin()), slice.size()};
      for (const std::string& each : script.answer(bytes)) write(each);
      is_deaf_.wait(true);
    }
    status_ = stream_->Finish();
    is_over_ = true;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::internal::RpcMethod> method_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream_;
  grpc::Status status_;
  std::atomic<bool> is_deaf_{false};
  std::atomic<bool> is_over_{false};
  std::jthread thread_;
};

}  // namespace windlass::testing
