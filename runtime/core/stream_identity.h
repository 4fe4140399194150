// Who a worker is that dials the gRPC listener itself: by its certificate or token, or on this machine by the
// user that its process runs as. What the stream says of itself decides nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/result.h"

namespace windlass::runtime {

struct StreamCredential {
  std::string tenant;
  std::string instance;     // empty: bound to none
  std::string application;  // empty: likewise
  bool is_agent = false;
  bool is_runtime = false;
};

// What is known of a caller that it cannot make up.
struct StreamFacts {
  std::optional<Result<StreamCredential>> shown = std::nullopt;  // none: neither certificate nor token
  std::optional<std::uint32_t> user = std::nullopt;              // of a process on this machine
  bool says_agent = false;
};

struct StreamRules {
  std::string tenant;                // of whom alone workers are let in; empty: of all
  std::string application;           // of workers whose credential names none
  std::vector<std::uint32_t> users;  // that need no credential on this machine
};

struct StreamIdentity {
  std::string tenant;
  std::string instance;  // worker ids are this, or begin with it and a dot; empty: any that is not in use
  std::string application;
  bool is_agent = false;
};

// The error is one sentence for the caller.
Result<StreamIdentity> identify_stream(const StreamFacts& facts, const StreamRules& rules);

}  // namespace windlass::runtime
