#include "scheduler/cli/app_arguments.h"

#include <CLI/CLI.hpp>

namespace windlass::cli {
namespace {

using Run = std::function<int()>;

template <class Action>
void run_with_admin(CLI::App* command, const Settings& settings, Run& run, Action action) {
  command->callback([&settings, &run, action] {
    run = [&settings, action] {
      Admin admin{settings};
      return action(admin);
    };
  });
}

void add_app_name(CLI::App* command, AppName& app) {
  command->add_option("app", app.text, "APP, or TENANT/APP")->required();
  command->add_option("--tenant", app.tenant, "The application's tenant (or WINDLASS_TENANT)");
}

const CLI::App* add_show(CLI::App& apps, AppArguments& all) {
  CLI::App* const show = apps.add_subcommand("show", "One application: its versions, settings and workers");
  show->footer(
      "\nSettings are shown as names only, with a version that grows when they change. A worker whose\n"
      "settings have an older version is reloaded when its turn comes. WEIGHT is a version's share in a\n"
      "split. Functions that could not be loaded are named below the workers.\n\n"
      "  windlass apps show hello\n  windlass --json apps show acme/hello");
  add_app_name(show, all.show);
  return show;
}

void add_lists(CLI::App& app, AppArguments& all, const Settings& settings, Run& run) {
  CLI::App* apps = app.add_subcommand("apps", "List deployed applications");
  apps->footer(
      "\nAn asterisk marks the version that is assigned unless another one is named. Settings are shown\n"
      "as names only. WORKERS counts as ready only those that can take an invocation now.\n"
      "RUNTIMES are those that have workers of the version, with how many are ready.\n\n"
      "  windlass apps\n  windlass --json apps --tenant acme\n  windlass apps show hello");
  apps->add_option("--tenant", all.tenant, "Only of this tenant");
  const CLI::App* const show = add_show(*apps, all);
  run_with_admin(apps, settings, run, [&all, show](Admin& admin) {
    return show->parsed() ? show_app(admin, all.show) : list_apps(admin, all.tenant);
  });
  CLI::App* runtimes = app.add_subcommand("runtimes", "List the runtimes");
  runtimes->footer("\nAPPS shows each application with its ready workers.\n\n  windlass runtimes");
  runtimes->add_option("--tenant", all.tenant, "Only of this tenant");
  run_with_admin(runtimes, settings, run, [&all](Admin& admin) { return list_runtimes(admin, all.tenant); });
}

void add_deploy(CLI::App& app, AppArguments& all, const Settings& settings, Run& run) {
  CLI::App* deploy = app.add_subcommand("deploy", "Deploy an application from a folder or a zip file");
  deploy->footer(
      "\nThe package needs a host.json at its top. The language is node if there is a package.json, or what\n"
      "windlass.json says, or --language. .git and local.settings.json are left out of a folder.\n"
      "Settings that are not named stay as they are. Where they change and the package does not, the\n"
      "workers of that version are reloaded one after another: of --code-version, or without it of the\n"
      "version that has this package, the one that serves if there are several.\n\n"
      "  windlass deploy ./hello\n"
      "  windlass deploy hello.zip --app hello --tenant acme --code-version v2\n"
      "  windlass deploy ./hello --settings settings.json --setting API_KEY\n"
      "  windlass deploy ./hello --setting CITY=Paris --unset API_KEY\n"
      "  windlass deploy ./hello --dry-run");
  DeployOptions& options = all.deploy;
  deploy->add_option("path", options.path, "A folder or a zip file")->required();
  deploy->add_option("--app", options.app.text, "APP or TENANT/APP; the folder's name if not given");
  deploy->add_option("--tenant", options.app.tenant, "Whose it is (or WINDLASS_TENANT)");
  deploy->add_option("--code-version", options.code_version,
                     "Not given: that of the same package if it is deployed, else the package's digest");
  deploy->add_option(
      "--metadata-version", options.metadata_version,
      "Versions that share one are split between; made from host.json and every function.json, or "
      "without any from the whole package, if not given");
  deploy->add_option("--language", options.language, "Of the workers that can run it");
  deploy->add_option(
      "--setting", options.settings,
      "NAME=VALUE, or NAME to take it from the environment, where nobody else can read it; may be repeated");
  deploy->add_option("--settings", options.settings_file,
                     "JSON file: an object of texts, or one like local.settings.json");
  deploy->add_option("--unset", options.unset, "The NAME of a setting to remove; may be repeated");
  deploy->add_option("--keep-zip", options.keep_zip, "Keep the zip made from a folder in this file");
  deploy->add_flag("--dry-run", options.dry_run, "Check and show it, and upload nothing");
  run_with_admin(deploy, settings, run, [&all](Admin& admin) { return deploy_app(admin, all.deploy); });

  CLI::App* undeploy = app.add_subcommand("undeploy", "Forget an application, or one version of it");
  undeploy->footer(
      "\n  windlass undeploy hello\n  windlass undeploy acme/hello --code-version v1\n"
      "  windlass undeploy hello --force");
  add_app_name(undeploy, all.undeploy.app);
  undeploy->add_option("--code-version", all.undeploy.code_version, "Only this version");
  undeploy->add_flag("--force", all.undeploy.force, "Unassign its workers first");
  run_with_admin(undeploy, settings, run, [&all](Admin& admin) { return undeploy_app(admin, all.undeploy); });
}

void add_assignments(CLI::App& app, AppArguments& all, const Settings& settings, Run& run) {
  AssignOptions& options = all.assign;
  CLI::App* assign = app.add_subcommand("assign", "Let further workers run an application");
  assign->footer(
      "\nIdle placeholders of the application's language are chosen: those that are connected to the "
      "runtime\n"
      "first, then others, which move to it.\n\n"
      "  windlass assign hello\n"
      "  windlass assign hello --workers 3 --runtime r-1\n"
      "  windlass assign hello --workers 10 --partial --code-version v2");
  CLI::App* unassign = app.add_subcommand("unassign", "Let workers of an application be placeholders again");
  unassign->footer("\n  windlass unassign hello\n  windlass unassign hello --workers 1");
  for (CLI::App* const each : {assign, unassign}) {
    add_app_name(each, options.app);
    each->add_option("--code-version", options.code_version,
                     each == assign ? "The newest if not given" : "Only workers of this version");
    each->add_flag("--no-wait,!--wait", options.no_wait, "Do not wait for the workers' answers");
    each->add_option("--wait-for", options.wait_s, "Seconds to wait at most")
        ->capture_default_str()
        ->check(CLI::Range(1, 3000));
    each->add_option("--id", options.id, "The request's id; sent again with the same, it is done once");
  }
  CLI::Option* count = assign->add_option("--workers", all.workers, "How many more; 1 if not given");
  CLI::Option* fewer = unassign->add_option("--workers", all.workers, "How many; all if not given");
  for (CLI::Option* const each : {count, fewer}) each->check(CLI::Range(1, 10000));
  assign->add_option("--runtime", options.runtime, "The id of the runtime they are to serve");
  assign->add_flag("--partial", options.partial, "Take fewer if there are not as many");
  run_with_admin(assign, settings, run, [&all, count](Admin& admin) {
    if (count->count() > 0) all.assign.workers = all.workers;
    return assign_workers(admin, all.assign);
  });
  run_with_admin(unassign, settings, run, [&all, fewer](Admin& admin) {
    if (fewer->count() > 0) all.assign.workers = all.workers;
    return unassign_workers(admin, all.assign);
  });

  CLI::App* split = app.add_subcommand("split", "Share an application's traffic between code versions");
  split->footer(
      "\nWeights are relative to each other. Every runtime of the application is told. A split replaces the\n"
      "one before; windlass apps show has the weights. To end it, name only the version that is to get\n"
      "everything: the others are then called only while that has no worker, and can be unassigned.\n\n"
      "  windlass split hello v1=80 v2=20\n"
      "  windlass split hello v2=1 && windlass unassign hello --code-version v1");
  add_app_name(split, all.split.app);
  split->add_option("weights", all.split.weights, "VERSION=WEIGHT ...")->required();
  run_with_admin(split, settings, run, [&all](Admin& admin) { return split_traffic(admin, all.split); });
}

void add_invoke(CLI::App& app, AppArguments& all, const Settings& settings, Run& run) {
  CLI::App* invoke = app.add_subcommand("invoke", "Call a function of an application");
  invoke->footer(
      "\nThe return value goes to standard output, logs of the function to standard error. With --json the\n"
      "return value is printed as it came. Exit code 1: the function or the scheduler said no.\n\n"
      "  windlass invoke hello greet --data '{\"name\":\"Ada\"}'\n"
      "  windlass invoke hello greet --text Ada --timeout 5\n"
      "  windlass invoke acme/hello resize --file picture.json\n"
      "  windlass --json invoke hello greet --data @input.json | jq .");
  add_app_name(invoke, all.invoke.app);
  invoke->add_option("function", all.invoke.function, "The function's name")->required();
  CLI::Option* data = invoke->add_option("--data", all.data, "JSON, @FILE, or - for standard input");
  CLI::Option* text = invoke->add_option("--text", all.text, "Plain text")->excludes(data);
  invoke->add_option("--file", all.invoke.file, "A file: JSON if it is, else text")
      ->excludes(data)
      ->excludes(text);
  CLI::Option* timeout =
      invoke
          ->add_option("--timeout", all.timeout_s,
                       "Seconds to wait for the answer; the function is then asked to stop")
          ->check(CLI::Range(0.001, 2990.0));
  invoke->add_option("--id", all.invoke.id,
                     "The invocation's id; sent again with the same, its result is shown");
  invoke->add_flag("--stack", all.invoke.stack, "Show where a function failed, if it says so");
  run_with_admin(invoke, settings, run, [&all, data, text, timeout](Admin& admin) {
    if (data->count() > 0) all.invoke.data = all.data;
    if (text->count() > 0) all.invoke.text = all.text;
    if (timeout->count() > 0) all.invoke.timeout_s = all.timeout_s;
    return invoke_function(admin, all.invoke);
  });
}

}  // namespace

void add_app_commands(CLI::App& app, AppArguments& arguments, const Settings& settings, Run& run) {
  add_lists(app, arguments, settings, run);
  add_deploy(app, arguments, settings, run);
  add_assignments(app, arguments, settings, run);
  add_invoke(app, arguments, settings, run);
}

}  // namespace windlass::cli
