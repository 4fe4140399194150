#include "runtime/core/log_limits.h"

#include <algorithm>
#include <utility>

namespace windlass::runtime {
namespace {

constexpr std::size_t kThrottledWorkersMax = 4096;  // then those that are quiet are forgotten

}  // namespace

void LogThrottle::Bucket::fill(double rate, double most, Instant now) {
  const double elapsed = is_new ? 0 : std::chrono::duration<double>(now - filled_at).count();
  level = is_new ? most : std::min(most, level + std::max(0.0, elapsed) * rate);
  filled_at = now;
  is_new = false;
}

LogThrottle::Bucket& LogThrottle::invocation_of(Worker& worker, std::string_view invocation,
                                                Instant now) const {
  const double rate = limits_.invocation_lines;
  const double most = rate * limits_.burst_seconds;
  std::string name{invocation};
  if (worker.invocations.size() >= limits_.invocations_max && !worker.invocations.contains(name)) {
    std::erase_if(worker.invocations, [&](const auto& each) {
      Bucket filled = each.second;
      filled.fill(rate, most, now);
      return filled.level >= most;
    });
    if (worker.invocations.size() >= limits_.invocations_max) name.clear();
  }
  Bucket& bucket = worker.invocations[std::move(name)];
  bucket.fill(rate, most, now);
  return bucket;
}

bool LogThrottle::admit(std::string_view worker_id, std::string_view invocation, std::size_t bytes,
                        Instant now) {
  if (workers_.size() >= kThrottledWorkersMax) forget_idle(now);
  Worker& worker = workers_[std::string{worker_id}];
  worker.seen_at = now;
  worker.lines.fill(limits_.worker_lines, double{1} * limits_.worker_lines * limits_.burst_seconds, now);
  const auto byte_rate = static_cast<double>(limits_.worker_bytes);
  worker.bytes.fill(byte_rate, byte_rate * limits_.burst_seconds, now);
  Bucket* const own = invocation.empty() ? nullptr : &invocation_of(worker, invocation, now);
  const bool is_admitted =
      worker.lines.level >= 1 && worker.bytes.level > 0 && (own == nullptr || own->level >= 1);
  if (is_admitted) {
    worker.lines.level -= 1;
    worker.bytes.level -= static_cast<double>(bytes);
    if (own != nullptr) own->level -= 1;
    return true;
  }
  ++worker.left_out.lines;
  worker.left_out.bytes += bytes;
  if (!worker.report_at) worker.report_at = now + limits_.report_after;
  return false;
}

std::optional<LeftOut> LogThrottle::poll_report(Instant now, bool is_last) {
  for (auto& [id, worker] : workers_) {
    if (!worker.report_at || (!is_last && now < *worker.report_at)) continue;
    worker.report_at.reset();
    LeftOut report = std::exchange(worker.left_out, {});
    report.worker = id;
    return report;
  }
  return std::nullopt;
}

std::optional<Instant> LogThrottle::poll_timeout() const {
  std::optional<Instant> first;
  for (const auto& [id, worker] : workers_) {
    if (worker.report_at && (!first || *worker.report_at < *first)) first = worker.report_at;
  }
  return first;
}

void LogThrottle::forget_idle(Instant now) {
  const Duration quiet = seconds{limits_.burst_seconds} * 2;
  std::erase_if(workers_, [&](const auto& each) {
    return !each.second.report_at && now - each.second.seen_at > quiet;
  });
}

}  // namespace windlass::runtime
