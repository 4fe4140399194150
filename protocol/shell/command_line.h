// The command line of a service: --config, --check-config, --help, --version and one flag per setting that
// may be given there. Secrets have no flags: a command line is readable by every user of the machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/shell/config_reader.h"

namespace windlass {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadConfiguration = 2;

struct Flag {
  std::string name;  // "--tenant"
  std::string key;   // "session.tenant"
  std::string help;
};

struct CommandLineOptions {
  std::string program;
  std::string version;
  std::string description;
  std::string examples;  // shown below the flags
  std::vector<Flag> flags;
};

struct CommandLine {
  std::optional<int> exit_code = std::nullopt;  // set: help was shown or the line was wrong; exit with it
  std::optional<std::string> config_file = std::nullopt;
  bool check_config = false;
  std::vector<FlagValue> flags = {};
};

// Prints help to standard output and mistakes to standard error.
CommandLine parse_command_line(const CommandLineOptions& options, int argc, const char* const* argv);

// Of a service that could not start: settings that are wrong stay wrong, but an address that another process
// has may be free the next time.
int exit_code_of(const Error& error);

// One problem per line on standard error, after the program's name.
void print_problems(const std::string& program, const std::vector<std::string>& problems);

}  // namespace windlass
