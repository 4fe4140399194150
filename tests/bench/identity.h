// What every server and client of a run shows and trusts.
#pragma once

#include <memory>

#include "protocol/adapters/tls_context.h"
#include "tests/support/certificates.h"

namespace windlass::bench {

struct Identity {
  Identity();
  testing::TestAuthority authority;
  testing::IssuedFiles files;
  std::unique_ptr<TlsContext> server_tls;
  std::unique_ptr<TlsContext> client_tls;
};

}  // namespace windlass::bench
