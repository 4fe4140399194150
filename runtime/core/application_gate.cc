#include "runtime/core/application_gate.h"

#include <algorithm>

namespace windlass::runtime {

void ApplicationGate::open(ChannelId channel, std::string tenant, std::string instance) {
  agents_.insert_or_assign(channel, Agent{std::move(tenant), std::move(instance)});
}

void ApplicationGate::close(ChannelId channel) {
  agents_.erase(channel);
}

void ApplicationGate::forget(ChannelId channel) {
  const auto found = agents_.find(channel);
  if (found == agents_.end()) return;
  Agent& agent = found->second;
  agent.waiting.reset();
  agent.serves.clear();
  if (!std::exchange(agent.is_trusted, true)) trusts_.emplace_back(channel, true);
}

bool ApplicationGate::is_granted(const Agent& agent, const std::string& application) const {
  const auto is_it = [](const std::string& has, const std::string& wanted) {
    return has == "*" || has == wanted;
  };
  for (const AgentGrant& each : options_.grants) {
    const bool is_tenant = each.tenant.empty() || each.tenant == agent.tenant;
    if (is_tenant && is_it(each.instance, agent.instance) && is_it(each.application, application))
      return true;
  }
  const auto told = granted_.find(agent.instance);
  return told != granted_.end() && told->second == application;
}

bool ApplicationGate::is_granted(std::string_view application) const {
  return std::ranges::any_of(granted_, [&](const auto& each) { return each.second == application; });
}

bool ApplicationGate::is_waited_for(const Agent& agent, Instant now) const {
  if (!options_.has_scheduler) return false;
  return !whole_at_ || now < std::max(agent.waiting_since, *whole_at_) + options_.wait;
}

void ApplicationGate::handle(ChannelId channel, WorkerSpecialized request, Instant now) {
  const auto found = agents_.find(channel);
  if (found == agents_.end()) return;
  found->second.waiting = std::move(request);
  found->second.waiting_since = now;
  decide(channel, found->second, now);
}

void ApplicationGate::decide(ChannelId channel, Agent& agent, Instant now) {
  const std::string& application = agent.waiting->application.job_host.application_id;
  const bool is_good = is_granted(agent, application);
  if (!is_good && is_waited_for(agent, now)) return;
  Decision decision{channel, {}, is_good};
  if (is_good) {
    agent.serves = application;
    if (!std::exchange(agent.is_trusted, true)) trusts_.emplace_back(channel, true);
  } else {
    decision.reason = "application '" + application + "' is not assigned to instance '" + agent.instance +
                      "'" +
                      (options_.has_scheduler ? "" : "; name both in a [[grant]] of the runtime's settings");
  }
  decision.request = *std::exchange(agent.waiting, std::nullopt);
  decisions_.push_back(std::move(decision));
}

void ApplicationGate::apply(GrantUpdate update, Instant now) {
  if (!update.is_whole && update.epoch < epoch_) return;
  // What is left of a whole one that was cut says nothing about the next.
  if (update.is_whole && update.is_first.value_or(update.epoch != next_epoch_)) next_granted_.clear();
  if (update.is_whole) next_epoch_ = update.epoch;
  epoch_ = update.epoch;
  auto& table = update.is_whole ? next_granted_ : granted_;
  for (auto& [instance, application] : update.granted) {
    if (table.size() >= kGrantsMax && !table.contains(instance)) continue;
    table.insert_or_assign(std::move(instance), std::move(application));
  }
  for (const std::string& instance : update.revoked) table.erase(instance);
  if (update.is_whole) {
    if (update.has_more) return;
    granted_ = std::exchange(next_granted_, {});
    if (!whole_at_) whole_at_ = now;
  }
  for (auto& [channel, agent] : agents_) {
    if (agent.waiting) decide(channel, agent, now);
    if (agent.serves.empty()) continue;
    const bool is_trusted = is_granted(agent, agent.serves);
    if (std::exchange(agent.is_trusted, is_trusted) != is_trusted) trusts_.emplace_back(channel, is_trusted);
  }
}

void ApplicationGate::handle_timeout(Instant now) {
  for (auto& [channel, agent] : agents_) {
    if (agent.waiting) decide(channel, agent, now);
  }
}

std::optional<ApplicationGate::Decision> ApplicationGate::poll_decision() {
  if (decisions_.empty()) return std::nullopt;
  std::optional<Decision> first{std::move(decisions_.front())};
  decisions_.pop_front();
  return first;
}

std::optional<std::pair<ChannelId, bool>> ApplicationGate::poll_trust() {
  if (trusts_.empty()) return std::nullopt;
  const auto first = trusts_.front();
  trusts_.pop_front();
  return first;
}

std::optional<Instant> ApplicationGate::poll_timeout() const {
  std::optional<Instant> next;
  if (!whole_at_) return next;
  for (const auto& [channel, agent] : agents_) {
    if (!agent.waiting) continue;
    const Instant at = std::max(agent.waiting_since, *whole_at_) + options_.wait;
    if (!next || at < *next) next = at;
  }
  return next;
}

}  // namespace windlass::runtime
