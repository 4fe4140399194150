// Which of a worker's deadlines come next and which have passed. Silence means anything only for workers that
// answer status requests. While a session is without its connection only that counts, and only for so long.
#pragma once

#include <optional>

#include "runtime/core/options.h"
#include "runtime/core/worker.h"

namespace windlass::runtime {

enum class Due : std::uint8_t {
  Nothing,
  Probe,    // ask for its status
  Silent,   // not a word for too long: lost
  Away,     // its session was without a connection for too long: lost
  Phase,    // it did not answer in time what its phase asked
  Replace,  // it could not load what others can
  Blocked,  // its queue has been full for too long
  Drained,  // the time for draining is over
  Forget,   // it is gone for long enough
};

std::optional<Instant> next_deadline(const Worker& worker, const RuntimeOptions& options);
// The gravest that is due.
Due due(const Worker& worker, const RuntimeOptions& options, Instant now);

}  // namespace windlass::runtime
