// What a hook's command says, kept in memory so that its last line can be told when it fails.
#pragma once

#include <string>

namespace windlass::conformance {

class HookOutput final {
 public:
  HookOutput();
  ~HookOutput();
  HookOutput(const HookOutput&) = delete;
  HookOutput& operator=(const HookOutput&) = delete;

  std::string path() const;       // to be opened by a child of this process
  std::string last_line() const;  // ": " and the line; empty when it said nothing

 private:
  int file_;
};

}  // namespace windlass::conformance
