// A scheduler's core with a store in memory and a clock in hand: what a shell does, one step at a time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/adapters/memory_store.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

inline WorkerKey worker_key(std::string_view instance, std::string_view tenant = "acme") {
  return {TenantId{std::string{tenant}}, InstanceId{std::string{instance}}};
}

inline CommandKey command_key(std::string_view id, std::string_view tenant = "acme") {
  return {TenantId{std::string{tenant}}, std::string{id}};
}

inline const WorkerKey kWorker = worker_key("w1");
inline const WorkerKey kOther = worker_key("w2");

class CoreTest : public ::testing::Test {
 protected:
  CoreTest() { restart(); }

  // A crash and a new process: whatever is not in the store is gone.
  void restart() {
    const auto snapshot = MemoryStore{image_}.load();
    ASSERT_TRUE(snapshot.has_value());
    auto core = SchedulerCore::restore(options_, *snapshot, ++seed_, now_);
    ASSERT_TRUE(core.has_value()) << core.error().reason;
    core_ = std::move(*core);
    sessions_.clear();
  }

  void pass(Duration time) {
    now_.steady += time;
    now_.wall += std::chrono::duration_cast<milliseconds>(time);
    core_->handle_timeout(now_);
  }

  SessionRef open(const WorkerKey& worker, Revision revision = Revision::Two) {
    const SessionRef session{0, ++next_session_};
    core_->handle(
        SessionOpened{session, worker, "s" + std::to_string(session.handle), Role::Worker, revision, "peer"},
        now_);
    sessions_[worker] = session;
    seqs_[session] = 0;
    return session;
  }

  void say(SessionRef session, SessionEvent event) {
    core_->handle(SessionSaid{session, std::move(event)}, now_);
  }

  void end(SessionRef session, std::string code = "E.TIMEOUT") {
    say(session, Ended{std::move(code), "over", Blame::Local, {}, {}});
  }

  // A business frame of the worker; the next in its session.
  Seq deliver(SessionRef session, const MessageParts& parts) {
    const Seq seq = seqs_[session]++;
    say(session, Delivered{seq, Message{parts}});
    return seq;
  }

  Seq deliver_result(SessionRef session, std::string_view command,
                     std::string_view payload = R"({"ok":true})") {
    const std::string id = "r-" + std::string{command};
    return deliver(session, {.type = "biz.result", .id = id, .payload = payload, .corr = command});
  }

  RequestId submit(const WorkerKey& worker, std::string_view id, std::string_view payload = "{}",
                   std::optional<Duration> timeout = std::nullopt) {
    const RequestId request{++next_request_};
    core_->handle(SubmitCommand{request, worker, std::string{id}, "biz.echo", std::string{payload}, timeout},
                  now_);
    return request;
  }

  template <class Request, class... Rest>
  RequestId ask(const WorkerKey& worker, Rest&&... rest) {
    const RequestId request{++next_request_};
    core_->handle(Request{request, worker, std::forward<Rest>(rest)...}, now_);
    return request;
  }

  // Commits and does the next batch; its effects, or none.
  std::optional<Effects> step() {
    auto effects = core_->poll_effects();
    if (!effects) return std::nullopt;
    Version version = effects->expected;
    if (!effects->writes.empty()) {
      auto committed = MemoryStore{image_}.commit(effects->writes, effects->expected);
      if (!committed) {
        core_->effects_failed(committed.error(), now_);
        return Effects{};
      }
      version = *committed;
    }
    core_->effects_committed(version);
    return effects;
  }

  // Everything that comes of what was handled so far.
  Effects settle() {
    Effects all;
    for (int i = 0; i < 100; ++i) {
      auto effects = step();
      if (!effects) return all;
      const auto append = [](auto& to, auto& from) {
        to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
      };
      append(all.writes, effects->writes);
      append(all.owns, effects->owns);
      append(all.sends, effects->sends);
      append(all.session_commands, effects->session_commands);
      append(all.packages_asked, effects->packages_asked);
      append(all.tells, effects->tells);
      append(all.replies, effects->replies);
      append(all.events, effects->events);
    }
    ADD_FAILURE() << "effects without end";
    return all;
  }

  static std::vector<std::string> sent_ids(const Effects& effects) {
    std::vector<std::string> ids;
    for (const Send& send : effects.sends) ids.emplace_back(send.message.id());
    return ids;
  }

  static const Reply* reply_to(const Effects& effects, RequestId request) {
    const Reply* found = nullptr;
    for (const Reply& reply : effects.replies) {
      if (reply.request != request) continue;
      EXPECT_EQ(found, nullptr) << "one reply per request";
      found = &reply;
    }
    return found;
  }

  static bool is_accepted(const Effects& effects, RequestId request) {
    const Reply* const reply = reply_to(effects, request);
    return reply != nullptr && std::holds_alternative<CommandAccepted>(reply->outcome);
  }

  // The code of a refusal; nothing for anything else.
  static std::optional<ErrorCode> refusal(const Effects& effects, RequestId request) {
    const Reply* const reply = reply_to(effects, request);
    const Error* const error = reply == nullptr ? nullptr : std::get_if<Error>(&reply->outcome);
    return error == nullptr ? std::nullopt : std::optional(error->code);
  }

  std::optional<CommandState> state(std::string_view id, std::string_view tenant = "acme") const {
    const auto view = core_->outbox().view(command_key(id, tenant));
    return view ? std::optional(view->state) : std::nullopt;
  }

  template <class Event>
  static std::vector<Event> events(const Effects& effects) {
    std::vector<Event> found;
    for (const CoreEvent& event : effects.events) {
      if (const auto* each = std::get_if<Event>(&event)) found.push_back(*each);
    }
    return found;
  }

  std::size_t rows(std::string_view prefix) const {
    std::size_t count = 0;
    for (const auto& [key, value] : image_->rows) count += key.starts_with(prefix) ? 1U : 0U;
    return count;
  }

  // A full disk: nothing larger fits any more, and then it does again.
  void fill_store() { image_->bytes_max = 0; }
  void make_room() { image_->bytes_max = std::numeric_limits<std::size_t>::max(); }

  CoreOptions options_;
  std::shared_ptr<MemoryImage> image_ = std::make_shared<MemoryImage>();
  std::unique_ptr<SchedulerCore> core_;
  Now now_{Instant{seconds{1000}}, WallTime{seconds{1'700'000'000}}};
  std::map<WorkerKey, SessionRef> sessions_;
  std::map<SessionRef, Seq> seqs_;
  std::uint64_t next_session_ = 0;
  std::uint64_t next_request_ = 0;
  std::uint64_t seed_ = 0;
};

}  // namespace windlass
