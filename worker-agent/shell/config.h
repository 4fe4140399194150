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
#include "protocol/shell/command_line.h"
#include "protocol/shell/config_reader.h"
#include "protocol/shell/json_log.h"
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
};

// [runtime]; what is not set is as for the scheduler.
struct RuntimeSettings {
  RuntimeTarget target;  // without a url until a command names one
  bool clear_text = false;
  TlsClientOptions tls;
  std::string token;  // secret
  std::string token_file;
  std::string fingerprint;
  SessionConfig session;
};

struct AgentSettings {
  ClientAddress scheduler;
  bool clear_text = false;  // also where others can listen in
  std::optional<TlsClientOptions> tls;
  std::string token;  // secret; empty: the certificate speaks for this worker
  std::string token_file;
  std::string fingerprint;  // of the certificate

  std::string tenant;
  std::string worker_name;
  std::string state_folder;

  SessionConfig session;
  Duration load_interval = seconds{5};

  AgentConfig core;
  std::string watcher;                        // windlass-run
  std::vector<std::string> exec_environment;  // "NAME=value"

  std::optional<LanguageWorkerSettings> worker;
  RuntimeSettings runtime;

  std::optional<std::string> metrics_address;  // numeric
  std::uint16_t metrics_port = 0;
  LogOptions log;
};

struct SettingsOutcome {
  AgentSettings settings;
  std::vector<std::string> problems;  // one sentence each; none: the settings are good
};

SettingsOutcome read_settings(ConfigSources sources);

// config_worker.cc: [language_worker] and [runtime], after everything else.
void read_language_worker(ConfigReader& reader, AgentSettings& settings);

// The flags, help and examples of the command line.
CommandLineOptions command_line_options();

}  // namespace windlass::agent
