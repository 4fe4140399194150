#include "tests/support/session_ledger.h"

#include <utility>

namespace windlass::testing {
namespace {

std::string name(const std::string& session, SessionLedger::From from) {
  return session + (from == SessionLedger::From::Worker ? " from the worker: " : " from the scheduler: ");
}

}  // namespace

void SessionLedger::fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

void SessionLedger::sent(const std::string& session, From from, Seq seq, std::string id) {
  LedgerStream& s = stream(session, from);
  if (s.sender_ended) fail(name(session, from) + "a message was taken after the end");
  if (seq != s.sent.size()) fail(name(session, from) + "numbers have a gap");
  s.sent.push_back(std::move(id));
}

void SessionLedger::owned(const std::string& session, From from, Seq next) {
  LedgerStream& s = stream(session, from);
  s.owned = std::max(s.owned, next);
}

void SessionLedger::delivered(const std::string& session, From from, const Delivered& event) {
  LedgerStream& s = stream(session, from);
  if (event.seq != s.delivered) fail(name(session, from) + "delivered twice or out of order");
  if (event.seq >= s.sent.size() || s.sent[event.seq] != event.message.id()) {
    fail(name(session, from) + "delivered " + std::string{event.message.id()} +
         ", which is not what was sent");
  }
  s.delivered = event.seq + 1;
}

void SessionLedger::acknowledged(const std::string& session, From from, Seq next) {
  LedgerStream& s = stream(session, from);
  if (next <= s.acknowledged) fail(name(session, from) + "an acknowledgement that says nothing new");
  if (next > s.owned) fail(name(session, from) + "acknowledged before it was owned");
  s.acknowledged = next;
}

void SessionLedger::ended(const std::string& session, From from, const Ended& event) {
  LedgerStream& s = stream(session, from);
  if (s.sender_ended) fail(name(session, from) + "ended twice");
  s.sender_ended = true;
  if (event.returned.size() != s.sent.size() - s.acknowledged) {
    fail(name(session, from) + "returned " + std::to_string(event.returned.size()) + " of " +
         std::to_string(s.sent.size() - s.acknowledged));
    return;
  }
  for (std::size_t i = 0; i < event.returned.size(); ++i) {
    if (event.returned[i].id() != s.sent[s.acknowledged + i])
      fail(name(session, from) + "returned out of order");
  }
}

void SessionLedger::sender_died(From from) {
  for (auto& [key, s] : streams_) {
    if (key.second == from && !s.sender_ended) s.sender_gone = true;
  }
}

std::string SessionLedger::unsettled(const std::string& live_session) const {
  for (const auto& [key, s] : streams_) {
    const auto& [session, from] = key;
    if (s.sender_ended || s.sender_gone || s.sent.empty()) continue;
    if (session != live_session) return name(session, from) + "neither over nor alive";
    if (s.acknowledged != s.sent.size()) return name(session, from) + "messages are left over";
  }
  return "";
}

}  // namespace windlass::testing
