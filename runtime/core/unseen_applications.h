// Applications whose workers are to come to this runtime and whose routes it has not seen since its own
// start. A path that does not name its application may belong to one of them, so for a while it belongs to
// nobody else: a neighbour with the same route must not get what was meant for one whose workers are on their
// way. An application that no worker is to come for is not waited for, or it would cost its neighbours that
// time.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/time.h"

namespace windlass::runtime {

class UnseenApplications final {
 public:
  explicit UnseenApplications(Duration patience) : patience_(patience) {}

  // What is not here and has workers that are to come. The first word after the start says whom to wait for;
  // who is assigned later had no callers before.
  void begin(const std::vector<std::string>& absent, Instant now) {
    if (std::exchange(has_begun_, true)) return update(absent);
    names_.insert(absent.begin(), absent.end());
    until_ = now + patience_;
  }
  // Whoever came, or is not wanted any more, is not waited for again.
  void update(const std::vector<std::string>& absent) {
    std::erase_if(names_,
                  [&](const std::string& name) { return std::ranges::find(absent, name) == absent.end(); });
  }

  bool is_any(Instant now) const { return !names_.empty() && now < until_; }
  std::optional<Instant> poll_timeout() const {
    return names_.empty() ? std::nullopt : std::optional{until_};
  }

 private:
  Duration patience_;
  bool has_begun_ = false;
  std::set<std::string> names_;
  Instant until_{};
};

}  // namespace windlass::runtime
