// What a handshake says about our own certificate.
#pragma once

#include <string>

#include "protocol/base/result.h"

namespace windlass {

// The SHA-256 of the first certificate of a PEM file, in lower-case hex.
Result<std::string> certificate_fingerprint(const std::string& pem_file);

}  // namespace windlass
