// A runtime reached by its gRPC server. Every stream is a beginning: what was under way on the one before is
// the runtime's to try again.
#include <utility>
#include <vector>

#include "protocol/adapters/websocket_client.h"
#include "protocol/session/backoff.h"
#include "worker-agent/adapters/function_rpc_client.h"
#include "worker-agent/shell/runtime_link.h"

namespace windlass::agent {
namespace {

class GrpcLink final : public RuntimeLink {
 public:
  GrpcLink(const RuntimeLinkOptions& options, const LinkPlace& place)
      : place_(place),
        session_(options.session),
        random_(options.seed),
        redial_(place.loop, [this] { dial(); }) {}

  Result<Done> open(const RuntimeLinkOptions& options) {
    const bool is_secure = options.url.starts_with("https://");
    const auto address =
        parse_address((is_secure ? "wss://" : "ws://") + options.url.substr(options.url.find("//") + 2));
    if (!address) return address.error();
    const bool is_loopback =
        address->host == "127.0.0.1" || address->host == "::1" || address->host == "localhost";
    if (!is_secure && !is_loopback && !options.clear_text_anywhere) {
      return Error{ErrorCode::ProtoState, Blame::Local,
                   options.url + " is clear text to another machine; use https, or set runtime.clear_text."};
    }
    RpcClientOptions client{.host = address->host,
                            .port = address->port,
                            .tls = std::nullopt,
                            .message_bytes_max = options.limits.message_bytes_max};
    if (is_secure) {
      client.tls = RpcClientTls{
          .authority_file = options.tls_files.authority_file, .certificate_file = {}, .key_file = {}};
      if (const auto& identity = options.tls_files.identity) {
        client.tls->certificate_file = identity->certificate_file;
        client.tls->key_file = identity->key_file;
      }
    }
    auto made = FunctionRpcClient::create(client, [&loop = place_.loop] { loop.post([] {}); });
    if (!made) return made.error();
    client_ = *std::move(made);
    // Where others can listen in it stays here.
    if (is_secure || is_loopback) token_ = options.worker.auth_token;
    shows_token_ = is_secure || is_loopback;
    dial();
    return Done{};
  }

  Result<Done> send(std::string& message) override {
    if (client_->is_full()) return Error{ErrorCode::SessionWouldBlock, Blame::Peer, "the queue is full"};
    if (client_->send(message)) return Done{};
    return Error{ErrorCode::SessionWouldBlock, Blame::Local, "there is no stream"};
  }

  bool take(bool is_paused) override {
    if (is_paused || is_gone()) return false;
    FunctionRpcClient::Polled polled = client_->poll();
    if (polled.is_open && !std::exchange(is_open_, true)) {
      place_.log.info("the stream to the runtime is open");
      place_.events.on_runtime_opened();
    }
    std::size_t bytes = 0;
    for (const std::string& message : polled.messages) {
      bytes += message.size();
      place_.events.on_runtime_message(message);
      backoff_.forget();  // it lets us in
    }
    if (bytes > 0) client_->consumed(bytes);
    if (polled.over) handle_over(*polled.over);
    return !polled.messages.empty();
  }

  void flush() override { client_->flush(); }
  void drain(bool is_complete) override {
    if (!is_complete) return;
    is_complete_ = true;
    redial_.set(std::nullopt);
  }
  bool is_gone() const override { return is_complete_ && client_->waiting_messages() == 0; }
  bool is_connected() const override { return is_open_; }
  std::size_t waiting_messages() const override { return client_->waiting_messages(); }
  bool is_drain_wanted() const override { return false; }
  void set_auth_token(const std::string& token) override {
    if (shows_token_) token_ = token;
  }
  void set_load(const LoadFacts&) override {}
  void set_fingerprint(const std::string&) override {}

 private:
  void dial() { client_->dial(token_); }
  void handle_over(const std::string& reason) {
    const Duration delay = backoff_.next(session_, random_);
    place_.log.warn("not connected to the runtime",
                    {{"reason", reason}, {"retry_ms", static_cast<std::uint64_t>(delay / milliseconds{1})}});
    if (std::exchange(is_open_, false)) place_.events.on_runtime_ended();
    if (!is_complete_) redial_.set(place_.loop.now().steady + delay);
  }

  LinkPlace place_;
  SessionConfig session_;
  Random random_;
  Backoff backoff_;
  LoopAlarm redial_;
  std::unique_ptr<FunctionRpcClient> client_;
  std::string token_;  // secret
  bool shows_token_ = false;
  bool is_open_ = false;
  bool is_complete_ = false;
};

}  // namespace

Result<std::unique_ptr<RuntimeLink>> make_grpc_link(const RuntimeLinkOptions& options,
                                                    const LinkPlace& place) {
  auto link = std::make_unique<GrpcLink>(options, place);
  if (auto opened = link->open(options); !opened) return opened.error();
  return std::unique_ptr<RuntimeLink>{std::move(link)};
}

}  // namespace windlass::agent
