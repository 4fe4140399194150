#include "runtime/core/messages.h"

namespace windlass::runtime {

bool Binding::is_trigger() const {
  static constexpr std::string_view kSuffix = "trigger";
  if (type.size() < kSuffix.size()) return false;
  const std::string_view end = std::string_view{type}.substr(type.size() - kSuffix.size());
  for (std::size_t i = 0; i < kSuffix.size(); ++i) {
    if ((end[i] | 0x20) != kSuffix[i]) return false;  // function.json writes queueTrigger, some QueueTrigger
  }
  return true;
}

const Binding* Function::trigger() const {
  for (const Binding& binding : bindings) {
    if (binding.is_trigger()) return &binding;
  }
  return nullptr;
}

}  // namespace windlass::runtime
