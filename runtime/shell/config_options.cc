// [runtime]: the numbers that the core decides by.
#include <array>

#include "runtime/shell/config.h"

namespace windlass::runtime {
namespace {

constexpr Range<Duration> kAnyTime{milliseconds{1}, seconds{24 * 3600}};
constexpr Range<std::uint64_t> kAnyCount{1, 10'000'000};

class OptionReader {
 public:
  explicit OptionReader(ConfigTable& table) : table_(table) {}
  void read(std::string_view key, Duration& value) { value = table_.duration(key, value, kAnyTime); }
  void read(std::string_view key, std::uint32_t& value) {
    value = static_cast<std::uint32_t>(table_.integer(key, value, kAnyCount));
  }
  void read(std::string_view key, std::size_t& value) { value = table_.integer(key, value, kAnyCount); }
  void read(std::string_view key, double& value) { value = table_.number(key, value, {0, 1}); }
  void read(std::string_view key, bool& value) { value = table_.boolean(key, value); }

 private:
  ConfigTable& table_;
};

void read_workers(OptionReader& reader, RuntimeOptions& options) {
  reader.read("slots_per_worker", options.slots_per_worker);
  reader.read("workers_max", options.workers_max);
  reader.read("channels_waiting_max", options.channels_waiting_max);
  reader.read("start_stream_timeout", options.start_stream_timeout);
  reader.read("init_timeout", options.init_timeout);
  reader.read("reload_timeout", options.reload_timeout);
  reader.read("metadata_timeout", options.metadata_timeout);
  reader.read("load_timeout", options.load_timeout);
  reader.read("warmup_timeout", options.warmup_timeout);
  reader.read("status_interval", options.status_interval);
  reader.read("status_lost", options.status_lost);
  reader.read("load_retry_first", options.load_retry_first);
  reader.read("load_retry_cap", options.load_retry_cap);
  reader.read("starts_failed_max", options.starts_failed_max);
  reader.read("lost_after", options.lost_after);
  reader.read("deadline_exceeded_max", options.deadline_exceeded_max);
  reader.read("backpressure_max", options.backpressure_max);
}

void read_invocations(OptionReader& reader, RuntimeOptions& options) {
  reader.read("tries_max", options.tries_max);
  reader.read("invocation_timeout", options.invocation_timeout);
  reader.read("invocation_timeout_max", options.invocation_timeout_max);
  reader.read("tracked_max", options.tracked_max);
  reader.read("pending_max", options.pending_max);
  reader.read("pending_timeout", options.pending_timeout);
  reader.read("orphan_after", options.orphan_after);
  reader.read("sweep_interval", options.sweep_interval);
  reader.read("delivery_max", options.delivery_max);
  reader.read("unknown_interval", options.unknown_interval);
  reader.read("sticky_keys_max", options.sticky_keys_max);
  reader.read("functions_max", options.functions_max);
}

void read_recovery(OptionReader& reader, RuntimeOptions& options) {
  reader.read("recycle_on_timeout", options.recycle_on_timeout);
  reader.read("timeout_grace", options.timeout_grace);
  reader.read("recycle_on_consecutive_timeouts", options.recycle_on_consecutive_timeouts);
  reader.read("drain_timeout", options.drain_timeout);
  reader.read("terminate_grace", options.terminate_grace);
  reader.read("abandoned_keep", options.abandoned_keep);
  reader.read("job_host_recreations_max", options.job_host_recreations_max);
  reader.read("held_max", options.held_max);
  reader.read("job_hosts_max", options.job_hosts_max);
  reader.read("memory_elevated", options.memory_elevated);
  reader.read("memory_critical", options.memory_critical);
  reader.read("memory_drain", options.memory_drain);
  reader.read("memory_drain_workers", options.memory_drain_workers);
  reader.read("memory_interval", options.memory_interval);
  reader.read("missing_max", options.missing_max);
  reader.read("utilization_high", options.utilization_high);
  reader.read("utilization_low", options.utilization_low);
  reader.read("utilization_low_for", options.utilization_low_for);
  reader.read("utilization_interval", options.utilization_interval);
  reader.read("relieved_for", options.relieved_for);
}

}  // namespace

void read_core_options(ConfigTable& table, RuntimeOptions& options) {
  OptionReader reader{table};
  read_workers(reader, options);
  static constexpr std::array<std::string_view, 3> kRouting = {"least_loaded", "round_robin", "sticky"};
  const std::string routing = table.choice("routing", kRouting.front(), kRouting);
  options.routing = routing == "sticky"        ? RoutingStrategy::Sticky
                    : routing == "round_robin" ? RoutingStrategy::RoundRobin
                                               : RoutingStrategy::LeastLoaded;
  read_invocations(reader, options);
  read_recovery(reader, options);
  if (options.memory_elevated > options.memory_critical) {
    table.problem("memory_elevated", "must not be above runtime.memory_critical");
  }
  if (options.invocation_timeout > options.invocation_timeout_max) {
    table.problem("invocation_timeout", "must not be above runtime.invocation_timeout_max");
  }
}

}  // namespace windlass::runtime
