#include "scheduler/shell/control.h"

#include <algorithm>
#include <utility>

#include "scheduler/shell/package_desk.h"
#include "scheduler/shell/session_loop.h"

namespace windlass {

Control::Control(EventLoop& loop, std::unique_ptr<SchedulerCore> core, std::unique_ptr<StateStore> store,
                 Metrics& metrics, ControlHooks hooks)
    : loop_(loop),
      core_(std::move(core)),
      metrics_(metrics),
      hooks_(std::move(hooks)),
      report_(metrics, hooks_.log),
      store_(std::move(store)),
      alarm_(loop, [this] { core_->handle_timeout(loop_.now()); }) {
  loop_.add_turn_end(TurnPhase::Decide, *this);
}

Control::~Control() {
  loop_.remove_turn_end(TurnPhase::Decide, *this);
}

void Control::post_inputs(std::vector<Input> inputs) {
  loop_.post([this, inputs = std::move(inputs)]() mutable {
    for (Input& input : inputs) core_->handle(std::move(input), loop_.now());
  });
}

std::uint64_t Control::wait_for(const CommandKey& command, FinishHandler handler) {
  const auto view = core_->outbox().view(command);
  if (!view || view->state == CommandState::Done || view->state == CommandState::Failed) {
    loop_.post(std::move(handler));
    return 0;
  }
  waiters_.emplace(command, Waiter{++waits_, std::move(handler)});
  return waits_;
}

void Control::stop_waiting(std::uint64_t number) {
  std::erase_if(waiters_, [&](const auto& each) { return each.second.number == number; });
}

void Control::on_turn_end(TurnPhase) {
  while (!committing_) {
    auto effects = core_->poll_effects();
    if (!effects) break;
    if (effects->writes.empty()) {
      core_->effects_committed(effects->expected);
      execute(std::move(*effects));
      continue;
    }
    WriteBatch batch = std::move(effects->writes);
    const Version expected = effects->expected;
    committing_ = std::move(effects);
    store_.commit(std::move(batch), expected, loop_,
                  [this](StoreThread::Answer answer) { handle_committed(std::move(answer)); });
  }
  alarm_.set(core_->poll_timeout());
}

void Control::handle_committed(StoreThread::Answer answer) {
  Effects effects = std::move(*std::exchange(committing_, std::nullopt));
  metrics_.commit(answer.took, answer.rows, answer.version.has_value());
  if (!answer.version) return handle_refused(answer.version.error());
  if (hooks_.log != nullptr && core_->store_health().is_failing) {
    hooks_.log->info("the store takes writes again");
  }
  core_->effects_committed(*answer.version);
  execute(std::move(effects));
}

// Said once when it begins: the core tries again and again, and a full disk stays full for long.
void Control::handle_refused(const Error& error) {
  const bool is_news = !core_->store_health().is_failing;
  core_->effects_failed(error, loop_.now());
  const StoreHealth& health = core_->store_health();
  if (hooks_.log != nullptr && is_news) {
    hooks_.log->error("the store refuses writes; nothing new is accepted until it takes them",
                      {{"code", to_string(error.code)}, {"reason", error.reason}});
  }
  if (health.is_fenced && hooks_.on_fenced) hooks_.on_fenced(health);
}

void Control::execute(Effects effects) {
  hand_out(effects);
  for (PackageAsked& asked : effects.packages_asked) {
    if (packages_ == nullptr) break;
    packages_->serve(std::move(asked),
                     [this](SessionRef session, Message message) { tell(session, std::move(message)); });
  }
  for (const Reply& reply : effects.replies) {
    if (auto handler = replies_.extract(reply.request)) handler.mapped()(reply);
  }
  for (const CoreEvent& event : effects.events) {
    report_.tell(event, loop_.now().steady);
    handle_news(event);
    if (const auto* finished = std::get_if<Finished>(&event)) tell_finished(finished->command);
  }
}

// Every loop gets its share at once, so that it leaves in one turn.
void Control::hand_out(Effects& effects) {
  std::vector<LoopOrders> orders(loops_.size());
  for (Own& own : effects.owns) orders[own.session.loop].owns.push_back(own);
  for (Send& send : effects.sends) {
    const std::uint32_t loop = send.session.loop;
    orders[loop].sends.push_back(std::move(send));
  }
  for (Tell& each : effects.tells) {
    orders[each.session.loop].sends.push_back({each.session, {}, std::move(each.message)});
  }
  for (SessionCommand& command : effects.session_commands) {
    if (const auto* allow = std::get_if<AllowInstance>(&command)) {
      if (hooks_.denied != nullptr) {
        hooks_.denied->remove(allow->worker.tenant.value(), allow->worker.instance.value());
      }
      continue;
    }
    if (const auto* revoke = std::get_if<RevokeTokens>(&command)) {
      // Before its session ends, so that it does not come back in between.
      const WorkerKey& worker = revoke->revocation.worker;
      if (hooks_.denied != nullptr) hooks_.denied->add(worker.tenant.value(), worker.instance.value());
      for (LoopOrders& each : orders) each.commands.push_back(command);
      continue;
    }
    const SessionRef session = std::visit(
        [](const auto& each) {
          if constexpr (requires { SessionRef{each.session}; }) {
            return each.session;
          } else {
            return SessionRef{};
          }
        },
        command);
    orders[session.loop].commands.push_back(std::move(command));
  }
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (!orders[i].empty()) loops_[i]->post_orders(std::move(orders[i]));
  }
}

void Control::tell(SessionRef session, Message message) {
  LoopOrders orders;
  orders.sends.push_back({session, {}, std::move(message)});
  loops_[session.loop]->post_orders(std::move(orders));
}

// What concerns applications.
void Control::handle_news(const CoreEvent& event) {
  if (const auto* unused = std::get_if<PackageUnused>(&event)) {
    if (packages_ != nullptr) packages_->remove_if_unused(unused->digest);
  }
  if (hooks_.log == nullptr) return;
  if (const auto* changed = std::get_if<AssignmentChanged>(&event)) {
    const AssignmentRecord& each = changed->assignment;
    const bool is_bad = each.state == AssignmentState::Failed || each.state == AssignmentState::Lost;
    hooks_.log->write(is_bad ? LogLevel::Warn : LogLevel::Info, "an assignment changed",
                      {{"tenant", each.worker.tenant.value()},
                       {"sender.id", each.worker.instance.value()},
                       {"application", each.application_id},
                       {"code_version", each.code_version},
                       {"runtime", each.runtime},
                       {"state", changed->is_over ? std::string_view{"released"} : to_string(each.state)},
                       {"id", each.command},
                       {"reason", each.reason}});
  } else if (const auto* stopped = std::get_if<RolloutStopped>(&event)) {
    hooks_.log->warn("settings rollout stopped; deploy again",
                     {{"tenant", stopped->app.tenant.value()},
                      {"application", stopped->app.application_id},
                      {"code_version", stopped->app.code_version},
                      {"settings_version", stopped->settings_version},
                      {"reason", stopped->reason}});
  } else if (const auto* refused = std::get_if<RuntimeAddressRefused>(&event)) {
    hooks_.log->warn("agents are not sent to a runtime: nobody vouches for its address",
                     {{"tenant", refused->runtime.tenant.value()},
                      {"sender.id", refused->runtime.instance.value()},
                      {"url", refused->url},
                      {"hint", "name it in [runtimes] addresses, or in the runtime's certificate"}});
  } else if (const auto* resumed = std::get_if<WorkerResumed>(&event)) {
    hooks_.log->info("a worker that was drained for want of memory is resumed",
                     {{"tenant", resumed->worker.tenant.value()},
                      {"sender.id", resumed->worker.instance.value()},
                      {"runtime", resumed->runtime.instance.value()}});
  } else if (const auto* signalled = std::get_if<RuntimeSignalled>(&event)) {
    const RuntimeSignal& signal = signalled->signal;
    hooks_.log->write(signal.urgent ? LogLevel::Info : LogLevel::Debug, "a runtime gave a signal",
                      {{"tenant", signalled->runtime.tenant.value()},
                       {"sender.id", signalled->runtime.instance.value()},
                       {"kind", signal.kind},
                       {"application", signal.application_id},
                       {"worker", signal.worker},
                       {"reason", signal.reason}});
  }
}

void Control::tell_finished(const CommandKey& command) {
  const auto [first, last] = waiters_.equal_range(command);
  std::vector<FinishHandler> handlers;
  for (auto each = first; each != last; ++each) handlers.push_back(std::move(each->second.handler));
  waiters_.erase(first, last);
  for (const FinishHandler& handler : handlers) handler();
}

}  // namespace windlass
