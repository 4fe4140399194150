// The golden vectors of schema/examples as messages, for tests and seeds.
#pragma once

#include <string>
#include <vector>

#include "protocol/codec/decode.h"

namespace windlass::support {

struct Example {
  std::string name;  // file name without .json
  std::string schema;
  Revision revision = Revision::Two;
  MessageKind kind = MessageKind::Text;
  std::string message;
  // Of invalid ones only.
  std::string rule;
  std::string code;
  std::string pointer;
  std::string keyword;
};

// In order of their names; fails loudly on a file of another form.
std::vector<Example> valid_examples();
std::vector<Example> invalid_examples();

inline Expect expect_of(Revision revision) {
  return revision == Revision::One ? Expect::RevisionOne : Expect::RevisionTwo;
}

}  // namespace windlass::support
