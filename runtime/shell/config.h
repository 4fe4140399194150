// The settings of windlass-runtime: what they are, where they come from, what they must be. Reading them
// opens no socket and changes no file, so that --check-config can do all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/adapters/tls_context.h"
#include "protocol/adapters/websocket_client.h"
#include "protocol/session/session_config.h"
#include "protocol/shell/access_tokens.h"
#include "protocol/shell/command_line.h"
#include "protocol/shell/config_reader.h"
#include "protocol/shell/json_log.h"
#include "protocol/shell/listen_address.h"
#include "runtime/core/application_gate.h"
#include "runtime/core/log_limits.h"
#include "runtime/core/options.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

// For workers that dial in by themselves.
struct ApplicationSettings {
  ApplicationVersion version;
  std::string directory;
  std::string language;
  TextMap environment;  // secret
};

struct SchedulerSettings {
  ClientAddress address;
  bool clear_text = false;  // also where others can listen in
  std::optional<TlsClientOptions> tls = {};
  std::string token = {};  // secret; empty: the certificate speaks for this runtime
  std::string token_file = {};
  std::string fingerprint = {};  // of the certificate
  std::string tenant = {};
};

struct RuntimeConfig {
  std::string id;  // of this runtime, in every frame it sends
  RuntimeOptions core;
  std::uint64_t memory_limit = 0;  // of this process, in bytes; 0: the control group's or the machine's

  // Sessions of agents.
  ListenAddress listen;
  std::string path = "/ws/worker";
  std::string url;  // that agents are told; empty: from the address
  std::uint64_t connections_max = limits::kConnectionsMax;
  std::optional<TlsServerOptions> tls;
  bool clear_text = false;  // also where others can listen in
  std::string credentials_file;
  std::string keys_file;  // empty: made, and ends with the process
  SessionConfig session;
  std::uint64_t unfinished_bytes_max = 512 * 1024 * 1024;  // of all agents' messages whose end has not come
  std::uint64_t queued_bytes_max = 1024 * 1024 * 1024;  // of what waits for all agents that are slow to read

  std::optional<ListenAddress> http;  // none: functions are not served over HTTP
  std::string http_url;
  bool http_anywhere = false;
  std::optional<TlsServerOptions> http_tls;
  std::string http_key_file;   // one key for every application, not of level admin
  std::string http_keys_file;  // see http_keys.h
  bool http_without_keys = false;
  bool http_named_only = false;
  std::vector<std::string> http_hosts;
  std::vector<std::string> http_origins;
  bool http_origin_credentials = false;
  bool http_shows_errors = false;
  std::uint64_t http_body_bytes_max = 100 * 1024 * 1024;
  std::uint64_t http_connections_max = 10'000;

  ListenAddress admin;
  bool admin_anywhere = false;  // clear text also where others can listen in
  bool admin_open = false;      // metrics and status without a token also where others can ask
  std::optional<TlsServerOptions> admin_tls;
  AccessSettings admin_access;  // none: root and the runtime's user may ask

  std::optional<ListenAddress> grpc;  // none: no worker dials in by itself
  std::optional<TlsServerOptions> grpc_tls;
  std::string grpc_application;  // of workers whose credential names none; empty: they are placeholders
  std::vector<std::uint32_t> grpc_users;  // whose workers are let in on this machine without a credential
  std::uint32_t grpc_queues = 1;
  std::uint64_t message_bytes_max = 128 * 1024 * 1024;  // of a FunctionRpc message, however it comes

  std::optional<SchedulerSettings> scheduler;  // none: it stands alone
  std::vector<ApplicationSettings> applications;
  std::vector<AgentGrant> grants;  // beside those of the scheduler
  LogOptions log;
  LogLimits log_limits;
};

struct RuntimeConfigOutcome {
  RuntimeConfig config;
  std::vector<std::string> problems;  // one sentence each; none: the settings are good
};

RuntimeConfigOutcome read_runtime_config(ConfigSources sources);
// Every field of RuntimeOptions, under its own name.
void read_core_options(ConfigTable& table, RuntimeOptions& options);

// The flags, help and examples of the command line.
CommandLineOptions runtime_command_line();

}  // namespace windlass::runtime
