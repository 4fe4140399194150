// What stands behind each admin route: reads the request, asks the core, writes the answer. The routes and
// who may use them are admin_api's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/base/limits.h"
#include "protocol/session/error_budget.h"
#include "scheduler/shell/admin_api.h"
#include "scheduler/shell/admin_request.h"

namespace windlass {

struct AdminCall {
  HttpRequest request;
  Target target;
  std::vector<std::string> names;  // what stands for {tenant} and {id} in the path
  HttpAnswer answer;

  WorkerKey worker() const { return {TenantId{names[0]}, InstanceId{names[1]}}; }
};

// What an operator asked for, and on what. Whatever is empty does not apply. Never a payload or a setting.
struct AuditLine {
  std::string_view action;
  std::string_view tenant = {};
  std::string_view sender_id = {};  // a worker
  std::string_view application = {};
  std::string_view language = {};
  std::string_view function = {};
  std::string_view package = {};  // its digest
  std::string_view type = {};     // of a command
  std::string_view id = {};       // likewise
  std::string_view code = {};     // of a refusal
};

class AdminCalls final {
 public:
  AdminCalls(Control& control, Metrics& metrics, AdminOptions options);
  ~AdminCalls();
  AdminCalls(const AdminCalls&) = delete;
  AdminCalls& operator=(const AdminCalls&) = delete;

  const AdminOptions& options() const { return options_; }
  void start_draining();
  void forget_waiter(std::uint64_t request);  // nobody waits for its answer any more

  void health(AdminCall& call);
  void readiness(AdminCall& call);
  void metrics(AdminCall& call);

  // admin_workers.cc
  void workers(AdminCall& call);
  void worker(AdminCall& call);
  void drain(AdminCall& call);
  void reset(AdminCall& call);
  void revoke(AdminCall& call);
  void allow(AdminCall& call);
  void resume(AdminCall& call);
  void denied(AdminCall& call);
  void rotate(AdminCall& call);

  // admin_commands.cc
  void submit(AdminCall& call);
  void submit_to_app(AdminCall& call);
  void submit_to_language(AdminCall& call);
  void commands(AdminCall& call);
  void command(AdminCall& call);
  void messages(AdminCall& call);

  // admin_apps.cc
  void package(AdminCall& call);
  void upload(AdminCall& call);
  void apps(AdminCall& call);
  void app(AdminCall& call);
  void deploy(AdminCall& call);
  void undeploy(AdminCall& call);
  void runtimes(AdminCall& call);

  // admin_assignments.cc
  void assign(AdminCall& call);
  void unassign(AdminCall& call);
  void split(AdminCall& call);
  void invoke(AdminCall& call);

 private:
  // Commands and invocations come by the thousand, and their lines at a rate.
  struct FrequentLines {
    Bucket lines{limits::kLogSessionLinesBurst, limits::kLogSessionLineRefill};
    std::uint64_t left_out = 0;
  };
  // A request that waits for a command's outcome.
  struct Wait {
    CommandKey command;
    HttpAnswer answer;
    std::uint64_t number = 0;  // Control's
    Instant deadline{};
    std::uint64_t request = 0;
  };

  template <class Request>
  void ask(AdminCall& call, Request request, std::string_view action);
  // What is asked for with a worker's name and nothing else.
  template <class Request>
  void act(AdminCall& call, std::string_view action);
  // The audit lines: whose token asked, for what, and the code of a refusal.
  void note(const std::string& who, const AuditLine& line);
  bool refuse_any_query(AdminCall& call);
  bool refuse_without_packages(AdminCall& call);
  void note_app(const std::string& who, std::string_view action, const TenantId& tenant,
                const std::string& application_id, std::string_view code);
  template <class Request>
  void ask_assignments(AdminCall& call, Request request, std::string_view action);
  void submit_to_runtimes(AdminCall& call, const std::vector<WorkerKey>& runtimes,
                          const SubmitCommand& command, std::string_view action,
                          const std::string& function = {});
  void submit_to(AdminCall& call, CommandTarget::Kind kind);
  HttpResponse show(const CommandKey& command) const;
  void begin_wait(const CommandKey& command, Duration time, AdminCall& call);
  void end_wait(std::uint64_t id);
  void end_late_waits();
  void set_alarm();

  Control& control_;
  Metrics& metrics_;
  AdminOptions options_;
  bool is_draining_ = false;
  std::map<std::uint64_t, Wait> waits_;
  std::set<std::pair<Instant, std::uint64_t>> deadlines_;
  std::uint64_t next_wait_ = 1;
  std::map<std::string, FrequentLines> frequent_;  // by the name of a token, so that no program hides another
  LoopAlarm alarm_;
};

}  // namespace windlass
