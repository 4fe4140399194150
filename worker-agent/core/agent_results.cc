// The way back: results from the journal's completion to the scheduler's acknowledgement, across sessions.
#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "worker-agent/core/agent_core.h"
#include "worker-agent/core/result_text.h"

namespace windlass::agent {

void AgentCore::answer(TextPairView key, const MessageParts& parts, std::vector<Waiting> waiting,
                       bool is_result) {
  //= WRK-1
  const std::string id = next_result_id();
  MessageParts named = parts;
  named.id = id;
  named.corr = key.first;
  pending_.answers.push_back({TextPair{key}, Message{named}, std::move(waiting), is_result});
}

void AgentCore::refuse(const Message& message, ErrorCode code, std::string_view reason, Waiting from) {
  note(AgentNote::Kind::Refused, message, to_string(code), from.seq);
  //= WRK-2
  const std::string text = refusal_text(code, reason);
  answer({message.id(), message.corr()}, {.type = kResult, .id = {}, .payload = text}, {from}, false);
}

void AgentCore::queue(Answer answer) {
  if (answer.is_result && !answering_.try_emplace(answer.key, true).second) {
    // The same result is on its way: waiting to be sent, or the session's to deliver.
    const auto same = [&](const Answer& each) {
      return each.is_result && TextPairEqual{}(each.key, answer.key);
    };
    const auto queued = std::ranges::find_if(outbox_, same);
    if (queued == outbox_.end()) return settle(answer.waiting);
    queued->waiting.insert(queued->waiting.end(), answer.waiting.begin(), answer.waiting.end());
    return;
  }
  outbox_.push_back(std::move(answer));
  // Only what waits for a session can grow: its commands come again, and the journal answers them.
  if (has_session() || outbox_.size() <= config_.results_max) return;
  const auto known = answering_.find(outbox_.front().key);
  if (outbox_.front().is_result && known != answering_.end()) answering_.erase(known);
  outbox_.pop_front();
}

const Message* AgentCore::poll_result() const {
  return has_session() && !blocked_ && !outbox_.empty() ? &outbox_.front().message : nullptr;
}

void AgentCore::handle_sent(Seq seq) {
  CHECK(!outbox_.empty());
  Answer answer = std::move(outbox_.front());
  outbox_.pop_front();
  note(AgentNote::Kind::Answered, answer.message, {}, seq);
  sent_.push_back({seq, std::string{answer.message.id()}, answer.key, answer.is_result});
  settle(answer.waiting);
}

void AgentCore::handle_unsendable(ErrorCode code, std::string_view reason) {
  CHECK(!outbox_.empty());
  Answer& answer = outbox_.front();
  const std::string text = refusal_text(code, reason);
  const std::string id = next_result_id();
  answer.message = Message{{.type = kResult, .id = id, .payload = text, .corr = answer.key.first}};
}

void AgentCore::start_session(SessionHandle session) {
  session_ = session;
  settled_.clear();
  owned_next_ = 0;
  owned_moved_ = false;
  sent_.clear();
  blocked_ = drained_said_ = false;
  draining_ = drain_is_ours_;
}

void AgentCore::end_session(const Ended& ended, Instant now) {
  session_ = SessionHandle{0};
  owned_moved_ = false;
  blocked_ = false;
  drop_unbegun(now);
  // What the scheduler did not take goes again, before anything newer.
  //= WRK-4
  std::deque<Answer> returned;
  for (const Sent& sent : std::exchange(sent_, {})) {
    const auto message = std::ranges::find(ended.returned, sent.message_id, &Message::id);
    if (message != ended.returned.end()) {
      returned.push_back({sent.key, *message, {}, sent.is_result});
    } else if (sent.is_result) {
      if (const auto known = answering_.find(sent.key); known != answering_.end()) answering_.erase(known);
    }
  }
  outbox_.insert(outbox_.begin(), std::make_move_iterator(returned.begin()),
                 std::make_move_iterator(returned.end()));
}

void AgentCore::acknowledge(Seq next) {
  while (!sent_.empty() && sent_.front().seq < next) {
    if (sent_.front().is_result) {
      if (const auto known = answering_.find(sent_.front().key); known != answering_.end())
        answering_.erase(known);
    }
    sent_.pop_front();
  }
}

void AgentCore::settle(const std::vector<Waiting>& waiting) {
  for (const Waiting& from : waiting) {
    if (from.session == session_ && has_session()) settled_.insert(from.seq);
  }
  while (settled_.erase(owned_next_) > 0) {
    ++owned_next_;
    owned_moved_ = true;
  }
}

std::optional<Owned> AgentCore::poll_own() {
  if (!std::exchange(owned_moved_, false)) return std::nullopt;
  return Owned{session_, owned_next_};
}

bool AgentCore::poll_drained() {
  if (!draining_ || drained_said_ || committing_ || !pending_.empty() || !work_.empty()) return false;
  // Without a session nobody can be told: the journal keeps the results for the next process.
  if (has_session() && !outbox_.empty()) return false;
  drained_said_ = true;
  return true;
}

std::string AgentCore::next_result_id() {
  return config_.result_id_prefix + "-" + std::to_string(++result_counter_);
}

}  // namespace windlass::agent
