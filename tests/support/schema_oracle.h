// A second opinion on every message: a general JSON Schema validator (valijson over rapidjson) reading the
// same schema files. It shares no code with protocol/codec. What JSON Schema cannot say (grammar beyond the
// parser's own, duplicate keys, attachments) it checks by hand; those rules are listed in schema/README.md.
#pragma once

#include <memory>
#include <string>

#include "protocol/codec/decode.h"

namespace windlass::support {

class SchemaOracle {
 public:
  // Regular expressions cost far more than all the rest together; a benchmark leaves them out to be fair.
  enum class Patterns { Check, Skip };

  explicit SchemaOracle(Patterns patterns = Patterns::Check);
  ~SchemaOracle();

  // What decode() should say.
  bool accepts(BytesView message, MessageKind kind, Expect expect);

  // The two halves of accepts() for one text frame of revision 2: for timing the validator alone.
  bool parse(BytesView text);
  bool validate();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace windlass::support
