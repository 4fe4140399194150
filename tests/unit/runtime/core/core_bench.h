// A runtime core on a bench: time that is moved by hand, channels that answer what a good worker answers, and
// everything that came out, kept in lists.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

inline FunctionRef make_function(const std::string& name) {
  auto function = std::make_shared<Function>();
  function->id = FunctionId{name + "-id"};
  function->name = name;
  function->bindings.push_back({"item", "queueTrigger", "in", "{}"});
  return function;
}

inline RpcResult success() {
  return RpcResult{RpcStatus::Success};
}
inline RpcResult failure(std::string reason) {
  return RpcResult{RpcStatus::Failure, std::move(reason)};
}

class CoreBench {
 public:
  explicit CoreBench(const RuntimeOptions& options = {}) : core(options, 1) {}

  void advance(Duration time) {
    const Instant end = now + time;
    for (auto at = core.poll_timeout(); at && *at <= end; at = core.poll_timeout()) {
      now = std::max(now, *at);
      core.handle_timeout(now);
      poll();
    }
    now = end;
    poll();
  }

  void poll() {
    while (auto out = core.poll_send()) sent.push_back(std::move(*out));
    while (auto out = core.poll_close()) closed.push_back(std::move(*out));
    while (auto out = core.poll_outcome()) outcomes.push_back(std::move(*out));
    while (auto out = core.poll_signal()) signals.push_back(std::move(*out));
    while (auto out = core.poll_log()) logs.push_back(std::move(*out));
    while (auto out = core.poll_note()) notes.push_back(std::move(*out));
  }

  ChannelId open(bool is_agent = true, const std::string& identity = {}) {
    const ChannelId channel{++channels};
    core.handle_opened(channel, {ChannelKind::Session, identity, is_agent, {}, "peer"}, now);
    poll();
    return channel;
  }

  // A stream of a worker that came by itself, over gRPC.
  ChannelId dial_in(const std::string& application = {}) {
    const ChannelId channel{++channels};
    core.handle_opened(channel, {ChannelKind::Grpc, {}, false, application, "127.0.0.1:1"}, now);
    poll();
    return channel;
  }

  void end(ChannelId channel, ChannelEnd how) {
    core.handle_closed(channel, how, "", now);
    poll();
  }
  void block(ChannelId channel) {
    core.handle_blocked(channel, now);
    poll();
  }
  void unblock(ChannelId channel) {
    core.handle_writable(channel, now);
    poll();
  }

  void say(ChannelId channel, WorkerMessage message) {
    core.handle_message(channel, std::move(message), now);
    poll();
  }

  ChannelId placeholder(const std::string& worker, TextMap capabilities = {{"WorkerStatus", "true"}}) {
    const ChannelId channel = open();
    say(channel, StartStream{WorkerId{worker}});
    say(channel, InitResponse{success(), std::move(capabilities), "node", "22", "1"});
    return channel;
  }

  WorkerSpecialized specialized(const std::string& worker, const std::string& code = "v1") const {
    WorkerSpecialized message;
    message.worker = WorkerId{worker};
    message.application = {app, code};
    message.directory = "/app";
    message.correlation_id = "c-" + worker;
    message.reload.result = success();
    return message;
  }

  // A worker of `app` that answers everything; Ready afterwards.
  ChannelId ready(const std::string& worker, const std::string& code = "v1",
                  TextMap capabilities = {{"WorkerStatus", "true"}}) {
    const ChannelId channel = placeholder(worker, std::move(capabilities));
    specialize(channel, worker, code);
    return channel;
  }

  void specialize(ChannelId channel, const std::string& worker, const std::string& code = "v1") {
    const std::size_t before = sent.size();
    say(channel, specialized(worker, code));
    answer(channel, before);
  }

  // Answers the metadata and load requests sent to it since.
  void answer(ChannelId channel, std::size_t since) {
    for (std::size_t i = since; i < sent.size(); ++i) {
      if (sent[i].channel != channel) continue;
      if (std::holds_alternative<MetadataRequest>(sent[i].message)) {
        say(channel, MetadataResponse{success(), false, functions});
      } else if (const auto* load = std::get_if<LoadRequest>(&sent[i].message)) {
        const FunctionId id = load->function->id;
        say(channel, LoadResponse{id, success()});
      }
    }
  }

  Result<Done> submit(const std::string& id, const std::string& function = "one") {
    return submit(invocation(id, function));
  }
  Result<Done> submit(Invocation wanted) {
    Result<Done> taken = core.submit(std::move(wanted), now);
    poll();
    return taken;
  }
  Invocation invocation(const std::string& id, const std::string& function = "one") const {
    Invocation made{InvocationId{id}, app, function, std::make_shared<const std::string>("body")};
    return made;
  }

  void respond(ChannelId channel, const std::string& id, RpcResult result = success()) {
    say(channel, InvocationResponse{InvocationId{id}, std::move(result), "answer"});
  }

  // The channel that was sent this invocation last.
  std::optional<ChannelId> channel_of(const std::string& id) const {
    for (auto at = sent.rbegin(); at != sent.rend(); ++at) {
      const auto* request = std::get_if<InvocationRequest>(&at->message);
      if (request != nullptr && request->invocation.value() == id) return at->channel;
    }
    return std::nullopt;
  }

  template <class Message>
  std::vector<const Message*> sent_to(ChannelId channel) const {
    std::vector<const Message*> found;
    for (const Send& send : sent) {
      if (send.channel != channel) continue;
      if (const auto* message = std::get_if<Message>(&send.message)) found.push_back(message);
    }
    return found;
  }

  const Outcome* outcome(const std::string& id) const {
    const Outcome* found = nullptr;
    for (const Outcome& one : outcomes) {
      if (one.id.value() != id) continue;
      EXPECT_EQ(found, nullptr) << "two outcomes of " << id;
      found = &one;
    }
    return found;
  }

  std::optional<WorkerView> worker(const std::string& id) const {
    for (WorkerView& view : core.workers()) {
      if (view.worker.value() == id) return std::move(view);
    }
    return std::nullopt;
  }
  WorkerState state(const std::string& id) const {
    const auto view = worker(id);
    EXPECT_TRUE(view) << id;
    return view ? view->state : WorkerState::Disconnected;
  }

  std::optional<JobHostView> job_host(const JobHostKey& key) const {
    for (JobHostView& view : core.job_hosts()) {
      if (view.key == key) return std::move(view);
    }
    return std::nullopt;
  }

  std::size_t count(Note::Kind kind) const {
    return static_cast<std::size_t>(std::ranges::count(notes, kind, &Note::kind));
  }
  std::size_t count(Note::Kind kind, const JobHostKey& host) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        notes, [&](const Note& note) { return note.kind == kind && note.job_host == host; }));
  }
  std::size_t count(Signal::Kind kind) const {
    return static_cast<std::size_t>(std::ranges::count(signals, kind, &Signal::kind));
  }
  bool is_closed(ChannelId channel) const {
    return std::ranges::find(closed, channel, &CloseChannel::channel) != closed.end();
  }

  RuntimeCore core;
  Instant now{seconds{1000}};
  std::uint64_t channels = 0;
  JobHostKey app{"shop", "m1"};
  std::vector<FunctionRef> functions{make_function("one"), make_function("two")};
  std::vector<Send> sent;
  std::vector<CloseChannel> closed;
  std::vector<Outcome> outcomes;
  std::vector<Signal> signals;
  std::vector<WorkerLog> logs;
  std::vector<Note> notes;
};

}  // namespace windlass::runtime
