// Who is judged and how to reach them, the same for every case of a run.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "conformance/runner/schema.h"
#include "conformance/runner/verdict.h"
#include "protocol/adapters/socket.h"
#include "protocol/adapters/tls_context.h"

namespace windlass::conformance {

struct Setup {
  Role role = Role::Scheduler;
  const WireSchemas* schemas = nullptr;
  std::string tenant = "acme";
  std::string token;          // of the tenant
  std::string runtime_token;  // of a runtime of the tenant; the same where tokens have no role
  std::string other_token;    // of another tenant; empty: none given

  // A scheduler.
  std::string host;
  std::string path = "/ws/worker";
  SocketAddress address;
  std::shared_ptr<const TlsContext> tls;  // none: clear text
  std::shared_ptr<const TlsContext> tls_without_certificate;
  bool has_client_certificate = false;
  std::map<std::string, std::string> hooks;  // by name: the command

  // A worker.
  std::string command;
  std::shared_ptr<const TlsContext> server_tls;
  std::string authority_file;  // what the worker trusts, handed to it as WINDLASS_CA
};

}  // namespace windlass::conformance
