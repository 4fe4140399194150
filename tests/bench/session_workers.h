// Language workers behind sessions, as agents show them to a runtime, in a process of their own: placeholders
// that do nothing, or two that echo, one of which goes to another application and back again and again.
#pragma once

#include <cstdint>
#include <string>

#include "tests/bench/child_process.h"
#include "tests/bench/identity.h"

namespace windlass::bench {

inline constexpr const char* kSteadyApplication = "steady";

// What a switching pair is told, as the data of an invocation. The answer to the last is a SwitchReport.
inline constexpr const char* kBeginSwitching = "begin";
inline constexpr const char* kEndSwitching = "end";
inline constexpr const char* kReport = "report";

class SessionWorkers final {
 public:
  // Ready when it returns.
  static SessionWorkers placeholders(const Identity& identity, std::uint16_t port, std::size_t first,
                                     std::size_t count);
  static SessionWorkers switching_pair(const Identity& identity, std::uint16_t port);

 private:
  SessionWorkers(const Identity& identity, std::uint16_t port, std::size_t first, std::size_t count,
                 const char* mode);
  ChildProcess process_;
};

// This program was started to be them.
bool plays_session_workers(int argc, char** argv);

}  // namespace windlass::bench
