#include "runtime/adapters/grpc_server.h"

#include <climits>
#include <thread>
#include <unordered_map>
#include <vector>

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "protocol/adapters/socket.h"
#include "runtime/adapters/grpc_stream.h"

namespace windlass::runtime {
namespace {

constexpr int kCallsAwaited = 16;            // per queue, so that a burst of workers finds somebody
constexpr unsigned int kFilesReadEvery = 1;  // seconds: gRPC looks at certificates by itself
constexpr auto kShutdownGrace = std::chrono::milliseconds{500};

Error no_listener(std::string reason) {
  return {ErrorCode::Internal, Blame::Local, std::move(reason)};
}

Result<std::shared_ptr<grpc::ServerCredentials>> credentials_of(const GrpcServerOptions& options) {
  if (!options.tls) return grpc::InsecureServerCredentials();
  const TlsServerOptions& tls = *options.tls;
  // Else it would wait for files that may never come.
  if (const auto usable = TlsContext::server(tls); !usable) return usable.error();
  namespace provided = grpc::experimental;
  provided::TlsServerCredentialsOptions credentials{
      std::make_shared<provided::FileWatcherCertificateProvider>(
          tls.identity.key_file, tls.identity.certificate_file, tls.client_authority_file, kFilesReadEvery)};
  credentials.watch_root_certs();
  credentials.watch_identity_key_cert_pairs();
  credentials.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return provided::TlsServerCredentials(credentials);
}

}  // namespace

// What a stream said, on its way to the loop.
struct StreamEvent {
  enum class Kind : std::uint8_t { Opened, Refused, Message, Writable, Closed };
  Kind kind;
  std::shared_ptr<GrpcStream> stream;
  std::string text = {};
  ChannelEnd end = ChannelEnd::Closed;
  std::string peer = {};
};

struct GrpcServer::Inside {
  // One queue and its thread; collects what completions bring until none is left, then posts it.
  class Queue final : public GrpcStreamEvents {
   public:
    Queue(Inside& inside, std::unique_ptr<grpc::ServerCompletionQueue> queue)
        : inside_(inside), queue_(std::move(queue)) {}

    void start() {
      for (int i = 0; i < kCallsAwaited; ++i) {
        GrpcStream::wait(inside_.service, *queue_, inside_.limits, *this, inside_.live);
      }
      thread_ = std::thread{[this] { run(); }};
    }
    void stop() {
      queue_->Shutdown();
      if (thread_.joinable()) thread_.join();
      void* tag = nullptr;
      bool ok = false;
      while (queue_->Next(&tag, &ok)) GrpcStream::handle(tag, ok);
      batch_.clear();
    }

   private:
    void run() {
      void* tag = nullptr;
      bool ok = false;
      while (queue_->Next(&tag, &ok)) {
        GrpcStream::handle(tag, ok);
        while (queue_->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) ==
               grpc::CompletionQueue::GOT_EVENT) {
          GrpcStream::handle(tag, ok);
          if (batch_.size() >= kBatchMax) break;
        }
        if (!batch_.empty()) inside_.post(std::exchange(batch_, {}));
      }
    }
    Result<StreamIdentity> identify_caller(const GrpcCaller& caller) override {
      if (inside_.options.identify) return inside_.options.identify(caller);
      return Error{ErrorCode::AuthUnauthenticated, Blame::Local, "nobody is let in here"};
    }
    void on_stream_refused(std::string peer, std::string reason) override {
      batch_.push_back(
          {StreamEvent::Kind::Refused, nullptr, std::move(reason), ChannelEnd::Closed, std::move(peer)});
    }
    void on_stream_opened(const std::shared_ptr<GrpcStream>& stream) override {
      batch_.push_back({StreamEvent::Kind::Opened, stream});
    }
    void on_stream_message(const std::shared_ptr<GrpcStream>& stream, std::string bytes) override {
      batch_.push_back({StreamEvent::Kind::Message, stream, std::move(bytes)});
    }
    void on_stream_writable(const std::shared_ptr<GrpcStream>& stream) override {
      batch_.push_back({StreamEvent::Kind::Writable, stream});
    }
    void on_stream_closed(const std::shared_ptr<GrpcStream>& stream, ChannelEnd end,
                          std::string reason) override {
      batch_.push_back({StreamEvent::Kind::Closed, stream, std::move(reason), end});
    }

    static constexpr std::size_t kBatchMax = 256;
    Inside& inside_;
    std::unique_ptr<grpc::ServerCompletionQueue> queue_;
    std::vector<StreamEvent> batch_;
    std::thread thread_;
  };

  // A stream as the loop knows it.
  struct Channel final : WorkerChannel {
    Channel(Inside& i, std::shared_ptr<GrpcStream> s) : inside(i), stream(std::move(s)) {}
    SendStatus send(std::string bytes) override { return stream->send(std::move(bytes)); }
    void close(bool is_clean, std::string_view reason) override {
      stream->finish(is_clean ? grpc::Status::OK
                              : grpc::Status{grpc::StatusCode::ABORTED, std::string{reason}});
      is_closed = true;
      inside.over.push_back(stream->id());
      inside.post({});  // to forget it
    }
    Inside& inside;
    std::shared_ptr<GrpcStream> stream;
    ChannelId id{0};
    bool is_closed = false;
  };

  Inside(EventLoop& l, GrpcServerOptions o, ChannelEvents& e) : loop(l), options(std::move(o)), events(e) {
    limits.message_bytes_max = options.message_bytes_max;
    limits.queue_messages_max = options.queue_messages_max;
    limits.queue_bytes_max = options.queue_bytes_max;
    limits.streams_max = options.streams_max;
  }

  // Shared with tasks that wait in the loop: they find out that the server is gone.
  void post(std::vector<StreamEvent> batch) {
    loop.post([this, alive = std::weak_ptr<bool>{alive}, batch = std::move(batch)]() mutable {
      if (!alive.expired()) handle(batch);
    });
  }
  void handle(std::vector<StreamEvent>& batch) {
    for (StreamEvent& event : batch) handle(event);
    for (const std::uint64_t id : std::exchange(over, {})) channels.erase(id);
  }
  void handle(StreamEvent& event);

  EventLoop& loop;
  GrpcServerOptions options;
  ChannelEvents& events;
  GrpcLimits limits;
  std::atomic<std::size_t> live{0};
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  std::unordered_map<std::uint64_t, std::unique_ptr<Channel>> channels;
  std::vector<std::uint64_t>
      over;  // closed from here, to be forgotten when no call of theirs is on the stack
  std::uint16_t port = 0;
  grpc::AsyncGenericService service;
  std::vector<std::unique_ptr<Queue>> queues;
  std::unique_ptr<grpc::Server> server;
};

void GrpcServer::Inside::handle(StreamEvent& event) {
  if (event.kind == StreamEvent::Kind::Refused) {
    if (options.refused) options.refused(event.peer, event.text);
    return;
  }
  if (event.kind == StreamEvent::Kind::Opened) {
    auto channel = std::make_unique<Channel>(*this, event.stream);
    Channel& opened = *channel;
    channels.emplace(event.stream->id(), std::move(channel));
    const StreamIdentity& identity = event.stream->identity();
    opened.id = events.on_channel_opened(opened, {.kind = ChannelKind::Grpc,
                                                  .identity = identity.instance,
                                                  .is_agent = identity.is_agent,
                                                  .application = identity.application,
                                                  .peer = event.stream->peer(),
                                                  .tenant = identity.tenant});
    return;
  }
  const auto found = channels.find(event.stream->id());
  const bool is_known = found != channels.end() && !found->second->is_closed;
  switch (event.kind) {
    case StreamEvent::Kind::Message:
      if (is_known) events.on_channel_message(found->second->id, event.text);
      return event.stream->handle_taken(event.text.size());
    case StreamEvent::Kind::Writable:
      if (is_known) events.on_channel_news(found->second->id, ChannelNews::Writable, {});
      return;
    case StreamEvent::Kind::Closed:
      if (!is_known) return;
      found->second->is_closed = true;
      events.on_channel_closed(found->second->id, event.end, event.text);
      over.push_back(event.stream->id());
      return;
    case StreamEvent::Kind::Opened:
    case StreamEvent::Kind::Refused:
      return;
  }
}

Result<std::unique_ptr<GrpcServer>> GrpcServer::listen(EventLoop& loop, GrpcServerOptions options,
                                                       ChannelEvents& events) {
  const auto address = numeric_address(options.address, options.port);
  if (!address) return address.error();
  if (!options.tls && !address->is_loopback()) {
    return no_listener("gRPC on " + address->text() +
                       " would be clear text; set [grpc] certificate, key and client_authority, or listen on "
                       "127.0.0.1");
  }
  // Asked first: gRPC reports an address in use in many lines, none of which says what to do.
  if (const auto listener = listen_on(*address); !listener) return listener.error();
  const auto credentials = credentials_of(options);
  if (!credentials) return credentials.error();
  auto inside = std::make_unique<Inside>(loop, std::move(options), events);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address->text(), *credentials, &port);
  builder.RegisterAsyncGenericService(&inside->service);
  const int bytes_max = static_cast<int>(std::min<std::size_t>(inside->limits.message_bytes_max, INT_MAX));
  builder.SetMaxReceiveMessageSize(bytes_max);
  builder.SetMaxSendMessageSize(bytes_max);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  for (std::uint32_t i = 0; i < inside->options.queues; ++i) {
    inside->queues.push_back(std::make_unique<Inside::Queue>(*inside, builder.AddCompletionQueue()));
  }
  inside->server = builder.BuildAndStart();
  if (!inside->server || port == 0) {
    // gRPC wants its queues emptied, whatever became of the server.
    if (inside->server) inside->server->Shutdown();
    for (const auto& queue : inside->queues) queue->stop();
    return Error{ErrorCode::LimitCapacity, Blame::Local,
                 "gRPC cannot listen on " + address->text() +
                     "; if another process listens there, end it, or choose another address"};
  }
  inside->port = static_cast<std::uint16_t>(port);
  for (const auto& queue : inside->queues) queue->start();
  return std::unique_ptr<GrpcServer>{new GrpcServer{std::move(inside)}};
}

GrpcServer::GrpcServer(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

GrpcServer::~GrpcServer() {
  inside_->alive.reset();
  inside_->server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  for (const auto& queue : inside_->queues) queue->stop();
  inside_->channels.clear();
}

std::uint16_t GrpcServer::port() const {
  return inside_->port;
}

std::size_t GrpcServer::streams() const {
  return inside_->live.load();
}

}  // namespace windlass::runtime
