// The settings of windlass-agent: what they are, where they come from, what they must be. Reading them opens
// no socket and changes no file, so that --check-config can do all of it.
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
#include "worker-agent/adapters/language_worker.h"
#include "worker-agent/adapters/worker_config.h"
#include "worker-agent/core/agent_core.h"

namespace windlass::agent {

// [language_worker]
struct LanguageWorkerSettings {
  WorkerConfig config;
  std::string executable;                // an absolute path
  std::vector<std::string> arguments;    // after those of its worker.config.json
  std::vector<std::string> environment;  // "NAME=value", all it sees beside what the agent adds
  std::size_t message_bytes_max = 128 * 1024 * 1024;
  WorkerOutputLimits output;
  StopGrace grace;
  Duration restart_first = milliseconds{250};
  Duration restart_cap = seconds{30};
  ConfinementLevel confine = ConfinementLevel::Best;
  std::optional<UserIds> user;        // none: one of its own, where the agent may switch
  std::vector<std::string> readable;  // folders besides its own that a confined worker can read
  std::vector<std::string> writable;  // and write, as far as their permissions allow it
  std::vector<PortRange> ports;  // TCP ports that it may listen on, besides those that the kernel chooses
  std::uint64_t processes_max = 1024;  // and threads
  std::uint64_t open_files_max = 65'536;
  std::uint64_t memory_bytes_max = 0;               // of all its processes; 0: no limit
  std::uint64_t scratch_bytes_max = 512ULL << 20U;  // of all that it writes; 0: no limit
};

// [runtime]; what is not set is as for the scheduler.
struct RuntimeSettings {
  RuntimeTarget target;  // without a url until a command names one
  bool clear_text = false;
  bool needs_tls = false;  // of runtimes that a command names: the scheduler is reached by TLS
  TlsClientOptions tls;
  std::string token;  // secret
  std::string token_file;
  std::string fingerprint;
  SessionConfig session;
};

// [metrics]
struct MetricsSettings {
  ListenAddress listen;
  bool anywhere = false;  // clear text also where others can listen in
  bool open = false;      // without a token also where others can ask
  std::optional<TlsServerOptions> tls;
  AccessSettings access;  // none: root and the agent's user may ask
};

struct AgentSettings {
  std::string file;  // where they come from, if they come from a file; secrets may stand in it

  ClientAddress scheduler;
  bool clear_text = false;  // also where others can listen in
  std::optional<TlsClientOptions> tls;
  std::string token;  // secret; empty: the certificate speaks for this worker
  std::string token_file;
  std::string fingerprint;  // of the certificate

  std::string tenant;
  std::string worker_name;
  std::string state_folder;
  std::string keys_file;  // what state is encrypted with

  SessionConfig session;
  Duration load_interval = seconds{5};
  bool has_load_limits = false;  // settings of earlier versions, without effect

  AgentConfig core;
  std::string watcher;                        // windlass-run
  std::vector<std::string> exec_environment;  // "NAME=value"

  std::optional<LanguageWorkerSettings> worker;
  RuntimeSettings runtime;

  std::optional<MetricsSettings> metrics;  // none: not served
  LogOptions log;
};

struct SettingsOutcome {
  AgentSettings settings;
  std::vector<std::string> problems;  // one sentence each; none: the settings are good
};

SettingsOutcome read_settings(ConfigSources sources);

// Whether the certificates that the settings name can be used. The error is one sentence that names the file.
Result<Done> check_files(const AgentSettings& settings);

// config_worker.cc: [language_worker] and [runtime], after everything else.
void read_language_worker(ConfigReader& reader, AgentSettings& settings);

// The flags, help and examples of the command line.
CommandLineOptions command_line_options();

}  // namespace windlass::agent
