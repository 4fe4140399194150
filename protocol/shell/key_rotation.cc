#include "protocol/shell/key_rotation.h"

#include <algorithm>

namespace windlass {

KeyRotation::KeyRotation(std::vector<std::string> kids, Duration token_lifetime) : lifetime_(token_lifetime) {
  if (!kids.empty()) newest_ = kids.front();
}

std::vector<std::string> KeyRotation::replace(const std::vector<std::string>& kids, Instant now) {
  const std::string newest = kids.empty() ? std::string{} : kids.front();
  if (newest != newest_) {
    superseded_.insert_or_assign(newest_, now);
    superseded_.erase(newest);
    newest_ = newest;
  }
  std::vector<std::string> early;
  std::erase_if(superseded_, [&](const auto& each) {
    if (std::ranges::find(kids, each.first) != kids.end()) return false;
    if (now < each.second + lifetime_) early.push_back(each.first);
    return true;
  });
  return early;
}

Duration KeyRotation::older_needed_for(Instant now) const {
  Duration longest{};
  for (const auto& [kid, since] : superseded_) longest = std::max(longest, since + lifetime_ - now);
  return longest;
}

}  // namespace windlass
