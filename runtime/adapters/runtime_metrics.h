// What is counted, under the names that operators' dashboards know: windlass_runtime_*. Loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/time.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

// The counters of one application that change with every invocation. Lives as long as its metrics.
class ApplicationMeter {
 public:
  virtual ~ApplicationMeter() = default;
  virtual void count_routed() = 0;
  virtual void count_outcome(const Outcome& outcome) = 0;
  virtual void count_refused(Cause cause) = 0;  // what was never taken
};

// Likewise of one source of events: http, invoke, ...
class SourceMeter {
 public:
  virtual ~SourceMeter() = default;
  virtual std::string_view name() const = 0;
  virtual void count_received() = 0;
  virtual void count_settled(Settlement settlement) = 0;
};

class RuntimeMetrics final {
 public:
  RuntimeMetrics();
  ~RuntimeMetrics();
  RuntimeMetrics(const RuntimeMetrics&) = delete;
  RuntimeMetrics& operator=(const RuntimeMetrics&) = delete;

  // Applications beyond a bound share one meter, named "other".
  ApplicationMeter& application(const std::string& id);
  SourceMeter& source(std::string_view name);  // there are few
  void count(const Note& note);
  void count_connection(ChannelKind kind);
  void count_session(std::string_view result);
  void count_signal(std::string_view kind);
  void count_http(std::uint16_t status);
  void set_workers(WorkerState state, std::size_t count);  // of the pool
  // Of the health: who can take an invocation, and whose session waits for a resume.
  void set_health(const RuntimeHealth& health);
  void set_applications(const std::vector<JobHostView>& hosts);
  void observe_in_flight(std::uint32_t invocations);  // of one worker, now and then
  void set_memory(double utilization);
  void set_pending(std::size_t invocations);
  // When a certificate of our own expires, in seconds since 1970.
  void set_certificate_expiry(const std::string& certificate, double expires);

  // The exposition format, version 0.0.4.
  std::string text() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

std::string_view to_string(Cause cause);
std::string_view to_string(Settlement settlement);

}  // namespace windlass::runtime
