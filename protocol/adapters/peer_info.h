// Reads what TLS proved about the other end.
#pragma once

#include <openssl/types.h>

#include "protocol/adapters/connection_events.h"

namespace windlass {

// Fills the certificate fields, if the peer showed a certificate and it was verified.
void read_certificate(const SSL* ssl, PeerInfo& peer);

}  // namespace windlass
