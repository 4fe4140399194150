// A second opinion on every message: a general JSON Schema validator (valijson over rapidjson) reading the
// same schema files. It shares no code with protocol/codec. What JSON Schema cannot say (grammar beyond the
// parser's own, duplicate keys, attachments) it checks by hand; those rules are listed in schema/README.md.
#pragma once

#include <memory>
#include <optional>

#include "protocol/codec/decode.h"

namespace windlass::support {

class SchemaOracle {
 public:
  // Regular expressions cost far more than all the rest together; a benchmark leaves them out to be fair.
  enum class Patterns { Check, Skip };

  explicit SchemaOracle(Patterns patterns = Patterns::Check);
  ~SchemaOracle();

  // The code that decode() should refuse the message with; none: it should take it.
  std::optional<ErrorCode> refusal(BytesView message, MessageKind kind, Expect expect);
  bool accepts(BytesView message, MessageKind kind, Expect expect) { return !refusal(message, kind, expect); }

  // The two halves of refusal() for one text frame of revision 2: for timing the validator alone.
  bool parse(BytesView text);
  bool validate();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace windlass::support
