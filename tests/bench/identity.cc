#include "tests/bench/identity.h"

#include "protocol/base/check.h"

namespace windlass::bench {

Identity::Identity() : files(authority.issue("server")) {
  auto server = TlsContext::server({{files.certificate, files.key}});
  auto client = TlsContext::client({authority.certificate_file()});
  CHECK(server.has_value() && client.has_value());
  server_tls = std::move(*server);
  client_tls = std::move(*client);
}

}  // namespace windlass::bench
