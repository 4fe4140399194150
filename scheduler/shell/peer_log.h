// Log lines about what peers do: one kind per thing that can happen, each with its words, its level and a
// rate of its own, so that no peer can flood the log or hide behind another kind of line. What was left out
// is counted in the next line of that kind. Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "protocol/base/limits.h"
#include "protocol/session/error_budget.h"
#include "protocol/shell/json_log.h"

namespace windlass {

enum class PeerNews : std::uint8_t {
  // Of those who are not let in, and of mistakes.
  ConnectionRefused,
  FrameRefused,
  FrameRefusedByPeer,
  TwinSuspected,
  // Of sessions.
  SessionOpened,
  SessionResumed,
  SessionMoved,
  SessionDetached,
  SessionDraining,
  SessionDrained,
  SessionEnded,
  HeartbeatsMissed,
  ClockJumped,
  ShortageBegan,
  ShortageOver,
  // Of work.
  CommandFailed,
  FrameIgnored,
  MessageDropped,
  // For whoever looks closely.
  ConnectionClosed,
  MessageCame,
  CommandSent,
  CommandDone,
  Count,
};

// Whatever is empty does not apply and is left out.
struct PeerLine {
  std::string_view tenant = {};
  std::string_view sender_id = {};
  std::string_view type = {};
  std::string_view id = {};
  std::string_view corr = {};
  std::string_view code = {};
  std::optional<std::uint64_t> seq = std::nullopt;
  std::string_view reason = {};
  std::string_view address = {};
  std::string_view session = {};
  std::string_view initiator = {};
  std::optional<std::uint64_t> count = std::nullopt;  // frames replayed, or given back
  std::optional<std::uint64_t> took_ms = std::nullopt;
};

class PeerLog final {
 public:
  explicit PeerLog(JsonLog* log);  // none: nothing is said; must outlive this

  bool takes(PeerNews news) const;
  void say(PeerNews news, const PeerLine& line, Instant now);

 private:
  struct Gate {
    Bucket lines;
    std::uint64_t left_out = 0;
  };

  JsonLog* log_;
  std::vector<Gate> gates_;  // by PeerNews
};

}  // namespace windlass
