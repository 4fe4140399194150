// The ways to runtimes: dialled, left, dialled again; and the drain, which ends the last.
#include <algorithm>
#include <utility>

#include "protocol/base/version.h"
#include "worker-agent/core/runtime_choice.h"
#include "worker-agent/shell/worker_host.h"

namespace windlass::agent {
namespace {

constexpr Duration kRedialAfter = seconds{1};  // a runtime that had us drained

}  // namespace

void WorkerHost::run(const DialRuntime& step) {
  place_.log.info("a runtime is dialled", {{"runtime", step.target.url}});
  place_.loop.post([this] { open_link(); });
}

void WorkerHost::open_link() {
  if (is_draining_) return;
  leave_link();
  const RuntimeTarget target = relay_.status().runtime;
  WorkerOptions worker;
  worker.tenant = tenant_;
  worker.instance_id = instance_id_;
  worker.auth_mode = runtime_.token.empty() ? AuthMode::Mtls : AuthMode::Token;
  worker.auth_token = runtime_.token;
  worker.fingerprint = runtime_.fingerprint;
  worker.profile.version = version();
  worker.profile.runtimes = {settings_.config.language};
  worker.profile.payload_types = {std::string{function_rpc::kMessageType}};
  RuntimeLinkOptions options{.url = target.url,
                             .clear_text_anywhere = runtime_.clear_text,
                             .tls = tls_.get(),
                             .tls_files = runtime_.tls,
                             .worker = std::move(worker),
                             .session = runtime_.session,
                             .limits = {},
                             .seed = seed_ + ++links_};
  options.limits.message_bytes_max = settings_.message_bytes_max;
  // What it was told before may be remembered from another time.
  const auto chosen = check_runtime_choice(target.url, runtime_.target.url, runtime_.needs_tls);
  auto link = chosen ? make_runtime_link(options, {place_.loop, place_.decoder, place_.log, *this})
                     : Result<std::unique_ptr<RuntimeLink>>{chosen.error()};
  if (!link) {
    place_.log.error("the runtime cannot be dialled",
                     {{"runtime", target.url}, {"reason", link.error().reason}});
    is_changed_ = true;
    return relay_.handle_dial_failed(link.error().reason, now());
  }
  link_ = *std::move(link);
}

void WorkerHost::leave_link() {
  std::erase_if(leaving_, [](const auto& link) { return link->is_gone(); });
  if (!link_) return;
  link_->drain(true);
  leaving_.push_back(std::move(link_));
  held_.clear();
  if (leaving_.size() > kLeavingLinksMax) leaving_.erase(leaving_.begin());
}

void WorkerHost::see_to_link() {
  // One that the runtime had drained, or that was left: at another time than a turn's end.
  const bool is_any_gone = std::ranges::any_of(leaving_, [](const auto& link) { return link->is_gone(); });
  if (is_any_gone) {
    place_.loop.post([this] { std::erase_if(leaving_, [](const auto& link) { return link->is_gone(); }); });
  }
  if (!link_ || !link_->is_gone() || is_draining_ || std::exchange(is_redialling_, true)) return;
  redial_.set(now() + kRedialAfter);
}

void WorkerHost::drain() {
  is_draining_ = is_changed_ = true;
  relay_.drain(now());
  run_steps();
  place_.loop.turn_again();
}

void WorkerHost::see_to_drain() {
  relay_.handle_connected(link_ && link_->is_connected(), now());
  run_steps();
  if (!link_) return;
  if (!is_draining_) {
    const bool is_idle = relay_.invocations() == 0 && http_.exchanges() == 0;
    if (link_->is_drain_wanted() && is_idle) link_->drain(true);
    return;
  }
  // What the link did not take yet goes before the word that there is no more.
  if (relay_.is_stopping() && held_.empty()) link_->drain(true);
}

bool WorkerHost::is_drained() const {
  return is_draining_ && relay_.is_stopped() && (!link_ || link_->is_gone());
}

}  // namespace windlass::agent
