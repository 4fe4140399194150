// The operator's command line: reads it, hands over to commands.h, exits with what that says.
#include <CLI/CLI.hpp>
#include <functional>

#include "protocol/base/version.h"
#include "scheduler/cli/app_arguments.h"
#include "scheduler/cli/commands.h"
#include "scheduler/cli/completion.h"

namespace windlass::cli {
namespace {

constexpr const char* kFooter = R"(
Examples:
  windlass workers
  windlass worker show acme/worker-1
  windlass send acme/worker-1 biz.echo '{"text":"hello"}' --wait
  windlass drain acme/worker-1 --reason "new disk" --deadline 300
  windlass revoke acme/worker-1; windlass denied; windlass allow acme/worker-1
  windlass resume acme/worker-1      (where APP STATE in windlass workers is drained)
  windlass commands --state waiting
  windlass top
  windlass deploy ./hello && windlass assign hello --workers 2
  windlass invoke hello greet --data '{"name":"Ada"}'
  windlass --json workers --tenant acme
  windlass token new --tenant acme --name laptop
  windlass token new --admin --name ada --out ada-token
  windlass token new --tenant acme --role runtime --out runtime-token
  windlass cert new --out certs --name scheduler --san DNS:localhost --san IP:127.0.0.1
  source <(windlass completion bash)

The admin listener is found by --url or WINDLASS_ADMIN_URL (http://127.0.0.1:7480 if neither is
given); of an https:// address the authority is --ca or WINDLASS_ADMIN_CA. The admin token comes from WINDLASS_ADMIN_TOKEN or --token-file, never from the command line,
which every user of the machine can read.

Exit codes: 0 fine, 1 the scheduler or the worker said no, 2 wrong usage, 3 the scheduler cannot be reached.)";

struct Everything {
  Settings settings;
  std::function<int()> run;
  std::string name;  // TENANT/ID of most commands
  WorkersOptions workers;
  ActionOptions action;
  std::uint64_t deadline_s = 0;
  TopOptions top;
  SendOptions send;
  std::uint64_t timeout_s = 0;
  ListOptions list;
  std::uint64_t wait_s = 0;
  TokenOptions token;
  KeyOptions key;
  CertificateOptions certificate;
  std::string file;
  std::string shell;
  AppArguments apps;
};

void add_worker_commands(CLI::App& app, Everything& all) {
  CLI::App* workers = app.add_subcommand("workers", "List the workers");
  workers->add_option("--tenant", all.workers.tenant, "Only of this tenant");
  workers->callback([&all, workers] {
    if (!workers->get_subcommands().empty()) return;
    all.run = [&all] {
      Admin admin{all.settings};
      return list_workers(admin, all.workers);
    };
  });
  CLI::App* worker = app.add_subcommand("worker", "Look at one worker");
  worker->require_subcommand(1);
  for (CLI::App* const parent : {workers, worker}) {
    CLI::App* show = parent->add_subcommand("show", "Everything known of a worker");
    show->footer("\n  windlass workers show acme/worker-1\n  windlass --json workers show acme/worker-1");
    show->add_option("worker", all.name, "TENANT/ID")->required();
    show->callback([&all] {
      all.run = [&all] {
        Admin admin{all.settings};
        return show_worker(admin, all.name);
      };
    });
  }
  const auto add_action = [&](const std::string& action, const std::string& help) {
    CLI::App* command = app.add_subcommand(action, help);
    command->add_option("worker", all.action.name, "TENANT/ID")->required();
    if (action == "drain" || action == "reset") {
      command->add_option("--reason", all.action.reason, "Told to the worker and to whoever looks");
    }
    CLI::Option* deadline = nullptr;
    if (action == "drain") {
      deadline = command->add_option("--deadline", all.deadline_s, "Seconds until the session ends anyway")
                     ->check(CLI::Range(1, 365 * 24 * 3600));
    }
    command->callback([&all, action, deadline] {
      all.action.action = action;
      if (deadline != nullptr && deadline->count() > 0) all.action.deadline_s = all.deadline_s;
      all.run = [&all] {
        Admin admin{all.settings};
        return act_on_worker(admin, all.action);
      };
    });
  };
  add_action(
      "drain",
      "Let a worker finish what it has; then its session and its agent end. Undone by starting the agent "
      "again, not by windlass resume");
  add_action("reset", "End a worker's session; it comes back with a new one");
  add_action("rotate", "Give a worker a new session token");
  add_action("revoke", "End a worker's session and keep its instance out, whatever credential it shows");
  add_action("allow", "Let a worker in again that was revoked");
  add_action(
      "resume",
      "Start a language worker again that its runtime drained, for want of memory or because it was told "
      "to, and whose agent is still there. Does not undo windlass drain");
  CLI::App* denied = app.add_subcommand("denied", "List the workers that were revoked and not allowed again");
  denied->add_option("--tenant", all.workers.tenant, "Only of this tenant");
  denied->callback([&all] {
    all.run = [&all] {
      Admin admin{all.settings};
      return list_denied(admin, all.workers);
    };
  });
  CLI::App* top = app.add_subcommand("top", "The fleet, live");
  top->add_option("--tenant", all.top.tenant, "Only of this tenant");
  top->add_option("--interval", all.top.interval_s, "Seconds between looks")->check(CLI::Range(0.1, 3600.0));
  top->add_flag("--once", all.top.once, "Show it once and exit");
  top->callback([&all] {
    all.run = [&all] {
      Admin admin{all.settings};
      return show_top(admin, all.top);
    };
  });
}

void add_command_commands(CLI::App& app, Everything& all) {
  CLI::App* send =
      app.add_subcommand("send", "Send a command to a worker, or to any worker of an application");
  send->footer(
      "\nTENANT/WORKER is one worker: if it is lost, so is the command. APP is any worker of the "
      "application:\n"
      "the least busy one gets it, and if that is lost before it was given the command, another one. A "
      "command\n"
      "that may have begun goes to another one only with --idempotent; else it fails and says so.\n\n"
      "  windlass send acme/worker-1 biz.echo '{\"text\":\"hello\"}' --wait\n"
      "  windlass send hello biz.exec '{\"name\":\"cleanup\"}' --idempotent --wait\n"
      "  windlass send acme/hello --app biz.echo '{}'\n"
      "  windlass send node --language --tenant acme biz.echo '{}'");
  send->add_option("to", all.send.name.text, "TENANT/WORKER, or APP")->required();
  CLI::Option* is_app = send->add_flag("--app", all.send.is_app, "TENANT/NAME is an application");
  send->add_flag("--language", all.send.is_language, "The name is a language: any worker that runs it")
      ->excludes(is_app);
  send->add_option("--tenant", all.send.name.tenant, "Of the application or language (or WINDLASS_TENANT)");
  send->add_flag("--idempotent", all.send.is_idempotent, "A second time does no harm");
  send->add_option("type", all.send.type, "Such as biz.echo")->required();
  send->add_option("payload", all.send.payload, "A JSON object, @FILE, or - for standard input")->required();
  send->add_option("--id", all.send.id, "The command's id; sent again with the same, it is done once");
  CLI::Option* timeout =
      send->add_option("--expires", all.timeout_s, "Seconds after which it is not tried any more")
          ->check(CLI::Range(1, 3000));
  send->add_flag("--wait", all.send.wait, "Wait for the result and show it");
  send->add_option("--wait-for", all.send.wait_s, "Seconds to wait at most")->check(CLI::Range(1, 86400));
  send->callback([&all, timeout] {
    if (timeout->count() > 0) all.send.timeout_s = all.timeout_s;
    all.run = [&all] {
      Admin admin{all.settings};
      return send_command(admin, all.send);
    };
  });
  const auto add_list = [&](const std::string& name, const std::string& help,
                            int (*list)(Admin&, const ListOptions&)) {
    CLI::App* command = app.add_subcommand(name, help);
    command->add_option("--tenant", all.list.tenant, "Only of this tenant");
    command->add_option("--worker", all.list.worker, "Only of this worker");
    command->add_option("--limit", all.list.limit, "How many at most")->check(CLI::Range(1, 1000));
    if (name == "commands") {
      command->add_option("--state", all.list.state, "Only those that are: waiting, sent, done or failed")
          ->check(CLI::IsMember({"waiting", "sent", "done", "failed"}));
    }
    command->callback([&all, list] {
      all.run = [&all, list] {
        Admin admin{all.settings};
        return list(admin, all.list);
      };
    });
  };
  add_list("commands", "List stored commands, the newest first", &list_commands);
  add_list("messages", "List messages of workers that answer no command", &list_messages);
  CLI::App* command = app.add_subcommand("command", "Show one command and its result");
  command->add_option("command", all.name, "TENANT/ID")->required();
  command->add_option("--wait", all.wait_s, "Seconds to wait for its outcome")->check(CLI::Range(0, 86400));
  command->callback([&all] {
    all.run = [&all] {
      Admin admin{all.settings};
      return show_command(admin, all.name, all.wait_s);
    };
  });
}

void add_local_commands(CLI::App& app, Everything& all) {
  CLI::App* token = app.add_subcommand("token", "Bearer tokens");
  token->require_subcommand(1);
  CLI::App* fresh = token->add_subcommand("new", "Make a token: shown once, kept by the scheduler as a hash");
  CLI::Option* tenant = fresh->add_option("--tenant", all.token.tenant, "The tenant it is for");
  fresh->add_flag("--admin", all.token.is_admin, "For an operator: a line of admin.tokens_file; needs --name")
      ->excludes(tenant);
  fresh->add_option("--name", all.token.name, "For people");
  fresh->add_option("--instance", all.token.instance, "Only this worker may use it");
  fresh->add_option("--role", all.token.role, "What its holder may be: worker, agent or runtime")
      ->check(CLI::IsMember({"worker", "agent", "runtime"}));
  fresh->add_option("--out", all.token.out, "Write the token to this file instead of showing it");
  fresh->callback([&all] {
    all.run = [&all] {
      all.token.json = all.settings.json;
      return new_token(all.token);
    };
  });
  CLI::App* key = app.add_subcommand("key", "Keys of functions, and files of signing and encryption keys");
  key->require_subcommand(1);
  CLI::App* add =
      key->add_subcommand("add", "Put a new key on top of a file, which is made if it is not there");
  add->add_option("file", all.file, "The scheduler's or an agent's file of keys")->required();
  add->footer(
      "Examples:\n"
      "  windlass key add /var/lib/windlass/scheduler.db.encryption-keys     then restart the scheduler\n"
      "  windlass key add /var/lib/windlass/scheduler.db.keys                read again at once");
  add->callback([&all] { all.run = [&all] { return add_key(all.file, all.settings.json); }; });
  CLI::App* made = key->add_subcommand("new", "Make a key: shown once, kept by the runtime as a hash");
  made->footer(
      "Examples:\n"
      "  windlass key new --app orders --out orders.key >> http-keys.toml\n"
      "  windlass key new --app orders --function place --name shop\n"
      "  windlass key new --app orders --admin");
  made->add_option("--app", all.key.application, "The application it is for; none: every one");
  made->add_option("--function", all.key.function, "Only this function of it");
  made->add_option("--name", all.key.name, "For people");
  made->add_option("--out", all.key.out, "Write the key to this file instead of showing it");
  made->add_flag("--admin", all.key.is_admin, "Opens functions of level admin, too");
  made->callback([&all] {
    all.run = [&all] {
      all.key.json = all.settings.json;
      return new_key(all.key);
    };
  });
  CLI::App* cert = app.add_subcommand("cert", "Certificates for development");
  cert->require_subcommand(1);
  CLI::App* issue =
      cert->add_subcommand("new", "Issue a certificate, with an authority of its own if there is none");
  issue->add_option("--out", all.certificate.folder, "The folder")->capture_default_str();
  issue->add_option("--name", all.certificate.name, "Of the files and the subject")->capture_default_str();
  issue->add_option("--san", all.certificate.alternative_names,
                    "DNS:name, IP:address or URI:text; may be repeated");
  issue->add_option("--days", all.certificate.days, "How long it is valid")
      ->capture_default_str()
      ->check(CLI::Range(1, 3650));
  issue->add_flag("--force", all.certificate.force, "Replace what is there");
  issue->callback([&all] {
    all.run = [&all] {
      all.certificate.json = all.settings.json;
      return new_certificate(all.certificate);
    };
  });
  CLI::App* config = app.add_subcommand("config", "The scheduler's settings");
  config->require_subcommand(1);
  CLI::App* check = config->add_subcommand("check", "Have windlass-scheduler check a settings file");
  check->add_option("file", all.file, "TOML file")->required();
  check->callback([&all] { all.run = [&all] { return check_config(all.file); }; });
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script");
  completion->add_option("shell", all.shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  completion->callback([&all, &app] {
    all.run = [&all, &app] {
      print(completion_script(app, all.shell));
      return kExitOk;
    };
  });
}

int run(int argc, char** argv) {
  CLI::App app{"Looks after a Windlass scheduler and its workers.", "windlass"};
  Everything all;
  app.footer(kFooter);
  app.set_version_flag("--version", "windlass " + std::string{version()});
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--url", all.settings.url, "The scheduler's admin listener");
  app.add_option("--token-file", all.settings.token_file, "File that holds the admin token");
  app.add_option("--ca", all.settings.authority_file, "Authority of the listener's certificate, for https");
  app.add_flag("--clear-text", all.settings.clear_text,
               "Send the token over http:// also to another machine");
  app.add_option("--patience", all.settings.patience_s, "Seconds to wait for an answer")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--json", all.settings.json, "Answer in JSON, for programs");
  add_worker_commands(app, all);
  add_command_commands(app, all);
  add_app_commands(app, all.apps, all.settings, all.run);
  add_local_commands(app, all);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {
    return app.exit(shown);
  } catch (const CLI::RequiredError& error) {
    // CLI11 misses the command before it sees what stands in its place.
    const auto extras = app.remaining();
    complain((extras.empty() || !app.get_subcommands().empty()
                  ? std::string{error.what()}
                  : "there is no command '" + extras.front() + "'") +
             "; see windlass --help");
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    complain(std::string{error.what()} + "; see windlass --help");
    return kExitUsage;
  }
  return all.run();
}

}  // namespace
}  // namespace windlass::cli

int main(int argc, char** argv) {
  return windlass::cli::run(argc, argv);
}
