#include "scheduler/shell/peer_log.h"

#include <array>
#include <utility>

namespace windlass {
namespace {

// Whose doing a line is decides how many of them there may be.
enum class Rate : std::uint8_t { Stranger, Session, Unbounded };

struct NewsKind {
  PeerNews news;
  LogLevel level;
  Rate rate;
  std::string_view event;
};

constexpr std::array kNews{
    NewsKind{PeerNews::ConnectionRefused, LogLevel::Warn, Rate::Stranger, "a connection was refused"},
    NewsKind{PeerNews::FrameRefused, LogLevel::Warn, Rate::Stranger, "a frame was refused"},
    NewsKind{PeerNews::FrameRefusedByPeer, LogLevel::Warn, Rate::Stranger, "a worker refused a frame"},
    NewsKind{PeerNews::TwinSuspected, LogLevel::Warn, Rate::Stranger, "two machines claim one identity"},
    NewsKind{PeerNews::SessionOpened, LogLevel::Info, Rate::Session, "a session opened"},
    NewsKind{PeerNews::SessionResumed, LogLevel::Info, Rate::Session, "a session resumed"},
    NewsKind{PeerNews::SessionMoved, LogLevel::Info, Rate::Session, "a newer connection took over a session"},
    NewsKind{PeerNews::SessionDetached, LogLevel::Info, Rate::Session,
             "a connection is gone; its session waits for a resume"},
    NewsKind{PeerNews::SessionDraining, LogLevel::Info, Rate::Session, "a worker drains"},
    NewsKind{PeerNews::SessionDrained, LogLevel::Info, Rate::Session, "a session closed after its drain"},
    NewsKind{PeerNews::SessionEnded, LogLevel::Warn, Rate::Session, "a session ended"},
    NewsKind{PeerNews::HeartbeatsMissed, LogLevel::Warn, Rate::Session, "heartbeats are missed"},
    NewsKind{PeerNews::ClockJumped, LogLevel::Warn, Rate::Session, "the clock jumped, or this machine slept"},
    NewsKind{PeerNews::ShortageBegan, LogLevel::Warn, Rate::Session,
             "a worker is short of memory or disk and gets no new work"},
    NewsKind{PeerNews::ShortageOver, LogLevel::Info, Rate::Session,
             "a worker has enough memory and disk again and gets new work"},
    NewsKind{PeerNews::CommandFailed, LogLevel::Warn, Rate::Session, "a command failed"},
    NewsKind{PeerNews::FrameIgnored, LogLevel::Info, Rate::Stranger,
             "a frame came again and changed nothing"},
    NewsKind{PeerNews::MessageDropped, LogLevel::Warn, Rate::Stranger,
             "the inbox is full; the tenant's oldest message made room"},
    NewsKind{PeerNews::ConnectionClosed, LogLevel::Debug, Rate::Unbounded, "a connection closed"},
    NewsKind{PeerNews::MessageCame, LogLevel::Debug, Rate::Unbounded, "a message came"},
    NewsKind{PeerNews::CommandSent, LogLevel::Debug, Rate::Unbounded, "a command was given to a session"},
    NewsKind{PeerNews::CommandDone, LogLevel::Debug, Rate::Unbounded, "a command is done"},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kNews.size(); ++i) {
    if (static_cast<std::size_t>(kNews[i].news) != i) return false;
  }
  return kNews.size() == static_cast<std::size_t>(PeerNews::Count);
}
static_assert(is_in_order(), "the table is indexed by PeerNews");

const NewsKind& kind_of(PeerNews news) {
  return kNews[static_cast<std::size_t>(news)];
}

Bucket bucket_of(Rate rate) {
  return rate == Rate::Session ? Bucket{limits::kLogSessionLinesBurst, limits::kLogSessionLineRefill}
                               : Bucket{limits::kLogLinesBurst, limits::kLogLineRefill};
}

}  // namespace

PeerLog::PeerLog(JsonLog* log) : log_(log) {
  for (const NewsKind& kind : kNews) gates_.push_back({bucket_of(kind.rate)});
}

bool PeerLog::takes(PeerNews news) const {
  return log_ != nullptr && log_->takes(kind_of(news).level);
}

void PeerLog::say(PeerNews news, const PeerLine& line, Instant now) {
  if (!takes(news)) return;
  const NewsKind& kind = kind_of(news);
  Gate& gate = gates_[static_cast<std::size_t>(news)];
  if (kind.rate != Rate::Unbounded && !gate.lines.take(now)) {
    ++gate.left_out;
    return;
  }
  const std::uint64_t left_out = std::exchange(gate.left_out, 0);
  log_->write(kind.level, kind.event,
              {{"tenant", line.tenant},
               {"sender.id", line.sender_id},
               {"type", line.type},
               {"id", line.id},
               {"corr", line.corr},
               {"code", line.code},
               {"seq", line.seq},
               {"session", line.session},
               {"reason", line.reason},
               {"address", line.address},
               {"initiator", line.initiator},
               {"count", line.count},
               {"took_ms", line.took_ms},
               {"left_out", left_out == 0 ? std::nullopt : std::optional{left_out}}});
}

}  // namespace windlass
