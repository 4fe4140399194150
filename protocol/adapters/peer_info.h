// Reads what TLS proved about the other end.
#pragma once

#include <openssl/types.h>

#include <string>

#include "protocol/adapters/connection_events.h"

namespace windlass {

// Fills the certificate fields, if the peer showed a certificate and it was verified.
void read_certificate(const SSL* ssl, PeerInfo& peer);
// The same from the text of a certificate that whoever ends TLS has verified.
void read_verified_certificate(const std::string& pem, PeerInfo& peer);

}  // namespace windlass
