// How long signing keys are needed after a newer one took over: as long as a session token that they signed
// may still be good. Knows kids, not secrets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "protocol/base/time.h"

namespace windlass {

class KeyRotation final {
 public:
  // `kids` newest first, as read at the start.
  KeyRotation(std::vector<std::string> kids, Duration token_lifetime);

  // The kids as they are now, newest first. Gives those that are gone too early: tokens that they signed were
  // still good, so their workers cannot resume.
  std::vector<std::string> replace(const std::vector<std::string>& kids, Instant now);

  // How long the older ones are needed from `now` on; zero when there are none, or all could go.
  Duration older_needed_for(Instant now) const;

 private:
  Duration lifetime_;
  std::string newest_;
  std::map<std::string, Instant> superseded_;  // when a newer one took over; unknown ones may be that of now
};

}  // namespace windlass
