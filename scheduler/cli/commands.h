// What each subcommand of windlass does; each returns the exit code. main.cc reads the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/cli/admin.h"
#include "scheduler/cli/app_commands.h"

namespace windlass::cli {

// worker_commands.cc
struct WorkersOptions {
  std::string tenant = {};
};
int list_workers(Admin& admin, const WorkersOptions& options);
int list_denied(Admin& admin, const WorkersOptions& options);
int show_worker(Admin& admin, const std::string& name);

// drain, reset, rotate, revoke or allow.
struct ActionOptions {
  std::string action;
  std::string name = {};
  std::string reason = {};
  std::optional<std::uint64_t> deadline_s = std::nullopt;
};
int act_on_worker(Admin& admin, const ActionOptions& options);

struct TopOptions {
  std::string tenant = {};
  double interval_s = 1;
  bool once = false;
};
int show_top(Admin& admin, const TopOptions& options);

// command_commands.cc
struct SendOptions {
  AppName name = {};  // TENANT/WORKER, or APP
  bool is_app = false;
  bool is_language = false;
  bool is_idempotent = false;
  std::string type = {};
  std::string payload = {};  // JSON, @FILE or - for standard input
  std::string id = {};
  std::optional<std::uint64_t> timeout_s = std::nullopt;
  bool wait = false;
  std::uint64_t wait_s = 60;
};
int send_command(Admin& admin, const SendOptions& options);

struct ListOptions {
  std::string tenant = {};
  std::string worker = {};
  std::string state = {};
  std::uint64_t limit = 100;
};
int list_commands(Admin& admin, const ListOptions& options);
int list_messages(Admin& admin, const ListOptions& options);
int show_command(Admin& admin, const std::string& name, std::uint64_t wait_s);

// secret_commands.cc
struct TokenOptions {
  std::string tenant = {};
  std::string name = {};
  std::string instance = {};
  std::string out = {};   // the token goes into this file instead of to standard output
  bool is_admin = false;  // for an operator rather than a worker
  std::string role = "worker";
  bool json = false;
};
int new_token(const TokenOptions& options);
// Puts a new key on top of a file of keys, which is made if it is not there.
int add_key(const std::string& file, bool json);
struct KeyOptions {
  std::string application = {};
  std::string function = {};
  std::string name = {};
  std::string out = {};  // as of a token
  bool is_admin = false;
  bool json = false;
};
int new_key(const KeyOptions& options);

// certificate_commands.cc
struct CertificateOptions {
  std::string folder = "certs";
  std::string name = "scheduler";
  std::vector<std::string> alternative_names = {};
  std::uint32_t days = 365;
  bool force = false;
  bool json = false;
};
int new_certificate(const CertificateOptions& options);

// Runs windlass-scheduler --check-config; returns only when it cannot be run.
int check_config(const std::string& file);

}  // namespace windlass::cli
