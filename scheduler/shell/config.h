// The settings of windlass-scheduler: what they are, where they come from, what they must be. Reading them
// opens no socket and changes no file, so that --check-config can do all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/adapters/tls_context.h"
#include "protocol/session/session_config.h"
#include "protocol/shell/access_tokens.h"
#include "protocol/shell/config_reader.h"
#include "protocol/shell/json_log.h"
#include "protocol/shell/listen_address.h"
#include "protocol/shell/tenants.h"
#include "scheduler/adapters/sqlite_store.h"
#include "scheduler/core/core_options.h"
#include "scheduler/seams/package_store.h"

namespace windlass {

struct ServiceConfig {
  ConfigSources sources;  // where all of this is from, to read the tenants again

  std::string id;  // of this scheduler, in every frame it sends

  ListenAddress listen;
  std::string path;
  std::vector<std::string> origins;
  std::uint32_t loops = 1;
  Duration tls_deadline = limits::kHandshakeStage;
  Duration upgrade_deadline = limits::kHandshakeStage;
  std::uint64_t opening_max = limits::kOpeningMax;          // per loop
  std::uint64_t connections_max = limits::kConnectionsMax;  // per loop
  bool clear_text = false;                                  // also where others can listen in
  std::optional<TlsServerOptions> tls;

  std::string credentials_file;
  std::string keys_file;  // empty: beside the store, made on the first start
  SessionConfig session;
  TenantTable tenants;
  CoreOptions core;

  std::optional<SqliteOptions> store;  // none: memory
  std::string encryption_keys_file;    // empty: beside the store, made on the first start
  PackageBounds packages;

  ListenAddress admin;
  bool admin_anywhere = false;  // clear text also where others can listen in
  std::optional<TlsServerOptions> admin_tls;
  AccessSettings admin_access;
  bool metrics_open = false;

  Duration drain_window{};
  LogOptions log;
};

struct ConfigOutcome {
  ServiceConfig config;
  std::vector<std::string> problems;  // one sentence each; none: the settings are good
};

ConfigOutcome read_config(ConfigSources sources);

}  // namespace windlass
