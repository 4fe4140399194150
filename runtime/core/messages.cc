#include "runtime/core/messages.h"

#include <algorithm>

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

bool is_set(const TextMap& settings, std::string_view name) {
  static constexpr std::string_view kYes = "true";
  const auto found = settings.find(name);
  if (found == settings.end()) return false;
  const auto is_letter = [](char given, char lower) { return (given | 0x20) == lower; };
  return found->second == "1" || std::ranges::equal(found->second, kYes, is_letter);
}

bool is_switched_off(const TextMap& settings, std::string_view function) {
  return is_set(settings, std::string{"AzureWebJobs."}.append(function).append(".Disabled"));
}

}  // namespace windlass::runtime
