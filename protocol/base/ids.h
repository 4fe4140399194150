// Strong ids: two ids of different kinds do not mix, and none converts to a number by accident.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace windlass {

template <class Tag, class Rep>
class StrongId {
 public:
  StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(std::move(value)) {}
  constexpr const Rep& value() const { return value_; }
  // clang-tidy 14 takes the zero of a compiler-made comparison for a null pointer.
  friend constexpr auto operator<=>(const StrongId&,
                                    const StrongId&) = default;  // NOLINT(modernize-use-nullptr)

 private:
  Rep value_{};
};

using ConnectionId = StrongId<struct ConnectionIdTag, std::uint64_t>;
using InstanceId = StrongId<struct InstanceIdTag, std::string>;  // the worker_instance_id
using TenantId = StrongId<struct TenantIdTag, std::string>;

// Position of a frame in one direction of a session. The core counts from 0 whatever the wire revision does.
using Seq = std::uint64_t;

}  // namespace windlass

template <class Tag, class Rep>
struct std::hash<windlass::StrongId<Tag, Rep>> {
  std::size_t operator()(const windlass::StrongId<Tag, Rep>& id) const {
    return std::hash<Rep>{}(id.value());
  }
};
