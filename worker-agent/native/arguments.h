// The command line of a language worker. Hosts pass two sets of names for the same four things; either is
// enough.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "protocol/base/result.h"

namespace windlass::native {

struct Arguments {
  std::string target;  // host:port
  std::string worker_id;
  std::string request_id;
  std::int64_t message_bytes_max = 0;
  unsigned threads = 0;  // 0: as many as the machine suggests
};

inline constexpr const char* kUsage =
    "usage: windlass-native-worker --functions-uri http://HOST:PORT/ --functions-worker-id ID "
    "--functions-request-id ID "
    "--functions-grpc-max-message-length BYTES [--threads N]\n"
    "   or: windlass-native-worker --host HOST --port PORT --workerId ID --requestId ID "
    "--grpcMaxMessageLength BYTES "
    "[--threads N]\n";

// `arguments` without the program's name. Words and options that are not known are passed over, as hosts add
// some.
Result<Arguments> parse_arguments(std::span<const char* const> arguments);

}  // namespace windlass::native
