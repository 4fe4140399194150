// What the command line asks for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace windlass::conformance {

struct Options {
  enum class Task : std::uint8_t { Run, List, Probe, Render } task = Task::Run;

  // Who is judged: one of the two.
  std::string url;
  std::string command;
  std::string tenant = "acme";
  std::string token_file;
  std::string runtime_token_file;  // none: token_file
  std::string other_token_file;
  std::string authority_file;
  std::string certificate_file;
  std::string key_file;
  std::map<std::string, std::string> hooks;

  // Which cases.
  std::vector<std::string> ids;  // beginnings
  std::vector<std::string> areas;
  std::vector<std::string> levels;
  std::string role;
  int revision = 0;          // 0: all
  std::string cases_folder;  // instead of those built in

  bool strict = false;
  bool verbose = false;
  bool skips_probe = false;
  bool as_json = false;
  std::size_t jobs = 4;
  std::string expected_failures_file;
  std::string json_file;
  std::string junit_file;
  std::string html_file;
  std::string render_file;
};

// Nothing where the command line was answered or refused; `exit_code` is then the process's.
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace windlass::conformance
