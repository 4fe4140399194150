// The way to one runtime, whatever carries it. All on the agent's loop.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/codec/decode.h"
#include "protocol/function_rpc/session_channel.h"
#include "protocol/session/worker_endpoint.h"
#include "protocol/shell/json_log.h"

namespace windlass::agent {

// Told from inside turn().
class RuntimeLinkEvents {
 public:
  virtual ~RuntimeLinkEvents() = default;
  virtual void on_runtime_opened() = 0;                           // nothing of an earlier one goes on
  virtual void on_runtime_ended() = 0;                            // for good
  virtual void on_runtime_message(std::string_view message) = 0;  // valid during the call
};

class RuntimeLink {
 public:
  virtual ~RuntimeLink() = default;

  // E.SESSION.WOULD_BLOCK: the queue is full, and the message is still the caller's. E.LIMIT.FRAME: never.
  virtual Result<Done> send(std::string& message) = 0;
  // Takes what came, unless `is_paused`: then it stays with the runtime, which feels it. True: something
  // came.
  virtual bool take(bool is_paused) = 0;
  virtual void flush() = 0;  // what was sent leaves
  // No new work is wanted; completed says that all is done. Then, or at once if it never opened, it is gone.
  virtual void drain(bool is_complete) = 0;
  virtual bool is_gone() const = 0;       // or never can be, and nothing is left to say
  virtual bool is_connected() const = 0;  // it can be spoken on now

  // For the metrics and the log.
  virtual std::size_t waiting_messages() const = 0;
  virtual bool is_drain_wanted() const = 0;  // by the runtime
  virtual void set_auth_token(const std::string& token) = 0;
  virtual void set_load(const LoadFacts& load) = 0;  // for its heartbeats
  virtual void set_fingerprint(const std::string& fingerprint) = 0;
};

struct RuntimeLinkOptions {
  std::string url;  // ws and wss: a session; http, https: gRPC
  bool clear_text_anywhere = false;
  const TlsContext* tls = nullptr;  // of a session; must outlive the link
  TlsClientOptions tls_files;       // of gRPC, which reads them itself
  WorkerOptions worker;
  SessionConfig session;
  function_rpc::ChannelLimits limits;
  std::uint64_t seed = 0;
};

// What must outlive every link. None of these may be made or destroyed at a turn's end.
struct LinkPlace {
  EventLoop& loop;
  Decoder& decoder;
  JsonLog& log;
  RuntimeLinkEvents& events;
};
Result<std::unique_ptr<RuntimeLink>> make_runtime_link(const RuntimeLinkOptions& options,
                                                       const LinkPlace& place);
bool is_grpc_url(std::string_view url);
Result<Done> check_runtime_url(std::string_view url);

// One each in its file.
Result<std::unique_ptr<RuntimeLink>> make_session_link(const RuntimeLinkOptions& options,
                                                       const LinkPlace& place);
Result<std::unique_ptr<RuntimeLink>> make_grpc_link(const RuntimeLinkOptions& options,
                                                    const LinkPlace& place);

}  // namespace windlass::agent
