// What two owners did and were told, session by session, and the promises between them: delivered once and in
// order, acknowledged only what was owned, and every message that was taken either acknowledged or given
// back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "protocol/session/session_event.h"

namespace windlass::testing {

// One direction of one session, kept by the side that sends and the side that receives.
struct LedgerStream {
  std::vector<std::string> sent;  // ids by seq, as send() took them
  Seq acknowledged = 0;           // as the sender's owner was told
  Seq delivered = 0;              // as the receiver's owner was told
  Seq owned = 0;                  // as the receiver's owner said
  bool sender_ended = false;
  bool sender_gone = false;  // its process died: it is told nothing more
};

class SessionLedger {
 public:
  enum class From : std::uint8_t { Worker, Scheduler };

  void sent(const std::string& session, From from, Seq seq, std::string id);
  void owned(const std::string& session, From from, Seq next);
  // An event of the side that is not, or that is, the sender.
  void delivered(const std::string& session, From from, const Delivered& event);
  void acknowledged(const std::string& session, From from, Seq next);
  void ended(const std::string& session, From from, const Ended& event);
  void sender_died(From from);

  LedgerStream& stream(const std::string& session, From from) { return streams_[{session, from}]; }

  // When everything had its time, nothing is left open but on the session named. Says what is; empty:
  // nothing.
  std::string unsettled(const std::string& live_session) const;

  void fail(std::string what);
  const std::string& failure() const { return failure_; }  // the first one; empty: none

 private:
  std::map<std::pair<std::string, From>, LedgerStream> streams_;
  std::string failure_;
};

}  // namespace windlass::testing
