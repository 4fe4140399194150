#include "conformance/runner/options.h"

#include <CLI/CLI.hpp>

#include "protocol/base/version.h"

namespace windlass::conformance {
namespace {

constexpr const char* kFooter = R"(Examples:
  windlass-conformance --url wss://localhost:8443/ws/worker --token-file token --ca ca.pem
  windlass-conformance --url wss://... --token-file token --id RES- --html report.html
  windlass-conformance --command 'python3 worker.py' --jobs 8 --strict
  windlass-conformance probe --url wss://... --token-file token
  windlass-conformance --list --role worker

Exit codes: 0 all pass, 1 failures, 2 wrong use, 3 the runner could not work.
See docs/conformance.md for a walk through both roles, and docs/conformance-cases.md for writing cases.)";

void add_subject(CLI::App& app, Options& options) {
  app.add_option("--url", options.url, "the scheduler to judge: wss://host:port/ws/worker");
  app.add_option("--command", options.command,
                 "the worker to judge: a shell command that dials WINDLASS_URL");
  app.add_option("--tenant", options.tenant, "the tenant that the token belongs to")->capture_default_str();
  app.add_option("--token-file", options.token_file, "file with the bearer token");
  app.add_option("--runtime-token-file", options.runtime_token_file,
                 "file with a token of the tenant that a runtime may show (else that of --token-file)");
  app.add_option("--other-token-file", options.other_token_file, "file with a token of another tenant");
  app.add_option("--ca", options.authority_file, "PEM file of the scheduler's authority (else the system's)");
  app.add_option("--certificate", options.certificate_file, "PEM file of the client certificate");
  app.add_option("--key", options.key_file, "PEM file of its key");
}

void add_hooks(CLI::App& app, Options& options) {
  for (const char* const name : {"send", "drain", "revoke", "rotate", "restart", "stop"}) {
    app.add_option_function<std::string>(
           std::string{"--"} + name + "-cmd",
           [&options, name](const std::string& command) { options.hooks[name] = command; },
           std::string{"shell command of the hook "} + name)
        ->group("Hooks (environment: INSTANCE, TENANT, SESSION)");
  }
}

void add_choice(CLI::App& app, Options& options) {
  app.add_option("--id", options.ids, "only cases whose id begins so, e.g. HSK-1")->group("Choice");
  app.add_option("--area", options.areas, "only these areas")->group("Choice");
  app.add_option("--level", options.levels, "only MUST, SHOULD or MAY")
      ->check(CLI::IsMember({"MUST", "SHOULD", "MAY"}))
      ->group("Choice");
  app.add_option("--role", options.role, "with --list: scheduler or worker")
      ->check(CLI::IsMember({"scheduler", "worker"}))
      ->group("Choice");
  app.add_option("--revision", options.revision, "only this revision of the wire")
      ->check(CLI::IsMember({1, 2}))
      ->group("Choice");
  app.add_option("--cases", options.cases_folder, "folder of cases instead of those built in")
      ->group("Choice");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  Options options;
  CLI::App app{"Judges a scheduler or a worker by the clauses of the Windlass session protocol."};
  app.footer(kFooter);
  app.set_version_flag("--version", std::string{version()});
  add_subject(app, options);
  add_hooks(app, options);
  add_choice(app, options);
  bool list = false;
  app.add_flag("--list", list, "list the chosen cases and end");
  app.add_flag("--strict", options.strict, "SHOULD and NON-STRICT count, too");
  app.add_flag("--no-probe", options.skips_probe,
               "the worker was seen to exit with 127 for a made-up case before");
  app.add_flag("--verbose", options.verbose, "print the wire log of every case that does not pass");
  app.add_option("--jobs", options.jobs, "cases played side by side")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--expected-failures", options.expected_failures_file,
                 "file of case ids that may fail; one that passes fails the run");
  app.add_option("--json", options.json_file, "write the report as JSON")->group("Reports");
  app.add_option("--junit", options.junit_file, "write it as JUnit XML")->group("Reports");
  app.add_option("--html", options.html_file, "write it as one HTML page")->group("Reports");
  app.add_option("--render", options.render_file,
                 "make the other reports from a JSON report; nothing is judged")
      ->group("Reports");
  CLI::App* const probe = app.add_subcommand("probe", "print a scheduler's limits");
  add_subject(*probe, options);
  probe->add_flag("--as-json", options.as_json, "for programs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    exit_code = app.exit(problem) == 0 ? 0 : 2;
    return std::nullopt;
  }
  if (probe->parsed()) options.task = Options::Task::Probe;
  if (list) options.task = Options::Task::List;
  if (!options.render_file.empty()) options.task = Options::Task::Render;
  const bool needs_subject = options.task == Options::Task::Run || options.task == Options::Task::Probe;
  if (needs_subject && options.url.empty() == options.command.empty()) {
    std::fprintf(
        stderr,
        "windlass-conformance: name who is judged, either --url URL or --command COMMAND; see --help\n");
    exit_code = 2;
    return std::nullopt;
  }
  return options;
}

}  // namespace windlass::conformance
