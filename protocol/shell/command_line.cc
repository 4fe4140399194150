#include "protocol/shell/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>

namespace windlass {

CommandLine parse_command_line(const CommandLineOptions& options, int argc, const char* const* argv) {
  CLI::App app{options.description, options.program};
  app.footer("\n" + options.examples +
             "\n\nEvery setting is also WINDLASS_<SECTION>_<KEY> in the environment. Flags win over the\n"
             "environment, which wins over the file. Exit codes: 0 fine, 1 failed, 2 bad configuration.");
  app.set_version_flag("--version", options.program + " " + options.version);
  CommandLine parsed;
  std::string file;
  CLI::Option* config = app.add_option("--config,-c", file, "TOML file with the settings")->type_name("FILE");
  app.add_flag("--check-config", parsed.check_config, "Say whether the settings are good, and exit");
  struct Given {
    const Flag* flag;
    CLI::Option* option;
    std::string value;
  };
  std::deque<Given> given;  // stays in place while CLI11 writes into it
  for (const Flag& flag : options.flags) {
    Given& one = given.emplace_back(Given{&flag, nullptr, {}});
    one.option = app.add_option(flag.name, one.value, flag.help + " (" + flag.key + ")")->type_name("");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {
    parsed.exit_code = app.exit(shown);
    return parsed;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string words = error.what();
    print_problems(options.program, {"The command line is wrong: " + words.substr(0, words.find(':')) +
                                     " needs a value; see --help."});
    parsed.exit_code = kExitBadConfiguration;
    return parsed;
  } catch (const CLI::ParseError& error) {
    print_problems(options.program,
                   {"The command line is wrong: " + std::string{error.what()} + "; see --help."});
    parsed.exit_code = kExitBadConfiguration;
    return parsed;
  }
  if (config->count() > 0) parsed.config_file = file;
  for (const Given& one : given) {
    if (one.option->count() > 0) parsed.flags.push_back({one.flag->name, one.flag->key, one.value});
  }
  return parsed;
}

int exit_code_of(const Error& error) {
  return error.code == ErrorCode::LimitCapacity ? kExitFailed : kExitBadConfiguration;
}

void print_problems(const std::string& program, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems)
    std::fprintf(stderr, "%s: %s\n", program.c_str(), problem.c_str());
}

}  // namespace windlass
