// HTTP requests to httpTrigger functions and their answers back. Knows routes and codes; who runs a function
// is its owner's to say. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/http/http_message.h"
#include "runtime/adapters/http_access.h"
#include "runtime/adapters/http_asked.h"
#include "runtime/adapters/http_routes.h"
#include "runtime/adapters/rpc_values.h"
#include "runtime/adapters/streamed_call.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

struct HttpFrontOptions {
  bool shows_errors = false;  // why a function failed stands in the answer; else in the log alone
  HttpKeys keys = {};
  bool needs_no_keys = false;  // all functions are everybody's who reaches us
  HttpHosts hosts = HttpHosts{};
  HttpOrigins origins = HttpOrigins{};
  std::string scheme = "http";
  // A request must name its application; else a path that only one of those here knows goes to that one.
  bool takes_named_only = false;
};

// What the front has done for it.
class HttpFrontHost : public StreamedCallHost {
 public:
  struct Application {
    JobHostKey key;
    std::string route_prefix;
    std::vector<FunctionRef> functions;
  };
  // Asked again whenever handle_changed() was called.
  virtual std::vector<Application> http_applications() = 0;
  // Applications that are to be served here and are not; asked along with the others.
  struct Absent {
    std::string application_id;
    bool has_worker = false;  // one is to come: it is assigned, has not failed, and is not here now
  };
  virtual std::vector<Absent> http_absent() { return {}; }
  // Whether it is not known yet which applications are served here.
  virtual bool http_awaits() { return false; }
  // Whether a path that names no application may belong to one that nobody here has seen yet.
  virtual bool http_has_unseen() { return false; }
  virtual const TextMap* http_capabilities(const JobHostKey& key) = 0;
  struct Call {
    JobHostKey job_host;
    std::string function;
    std::shared_ptr<const std::string> body;  // shared with the retries
    TraceContext trace;
    std::shared_ptr<InvocationStream> stream = {};  // shared with the connection
  };
  // Whether any call would be taken now.
  virtual Result<Done> http_ready() = 0;
  // `done` is called once, later. An error: it is not, and nothing began.
  virtual Result<InvocationId> http_invoke(Call call, std::function<void(const Outcome&)> done) = 0;
  // Nobody waits for it any more; `done` is called all the same.
  virtual void http_cancel(const InvocationId& invocation) = 0;
  virtual void http_answered(std::uint16_t status) = 0;
};

class HttpFront final : public HttpHandler {
 public:
  // Regular expressions in the routes of one application; each may take 1 MiB.
  static constexpr std::size_t kPatternsMax = 64;

  // The host must outlive the front.
  HttpFront(HttpFrontOptions options, HttpFrontHost& host, std::uint64_t seed);
  ~HttpFront() override;

  std::optional<HttpResponse> refuse(const HttpRequest& head) override;
  std::shared_ptr<HttpExchangeEvents> stream(const HttpRequest& head,
                                             const std::shared_ptr<HttpExchange>& exchange) override;
  void handle(HttpRequest request, HttpAnswer answer) override;
  void handle_gone(std::uint64_t request) override;
  // Functions or applications are others than before.
  void handle_changed() { is_stale_ = true; }
  // An application came: its routes are remembered while it is away, even if nobody asks for it before.
  void handle_came() { refresh(); }
  void set_keys(HttpKeys keys) { options_.keys = std::move(keys); }
  // What is wrong with functions that are to be served, one sentence each, once; for the log. It is found
  // when they change, so that nobody has to ask for one first.
  std::vector<std::string> poll_problems();

 private:
  struct Target {
    JobHostKey job_host;
    FunctionRef function;
    std::string trigger;
    std::string output;
    AuthLevel level = AuthLevel::Function;
  };
  struct Site {
    std::string application;
    RouteTable routes;
    std::size_t patterns = 0;
  };
  // The function that a request means, and what is left of the request for it.
  struct Chosen {
    Target target;  // a copy: routes may change before the answer
    RouteParams params;
    std::string path;
    HttpQuery query;
    std::string host;
  };

  void refresh();
  void warn_of_outputs(const HttpFrontHost::Application& application, const Function& function);
  void complain(std::string problem);
  Result<Route> route_of(const FunctionRef& function, const std::string& text);
  void add(Site& site, const HttpFrontHost::Application& application, const FunctionRef& function);
  struct Sought {
    RouteTable::Found found;
    bool is_shared = false;  // several applications know the path, and it names none
    bool is_found() const { return found.target || !found.allowed.empty(); }
  };
  Sought find(const std::vector<std::string>& segments, std::string_view host, std::string_view method) const;
  // Why the function may be here later; empty: nobody is awaited who could have it.
  std::string_view awaited(const std::vector<std::string>& segments, std::string_view host,
                           std::string_view method, const Sought& sought) const;
  std::optional<HttpResponse> refuse_stranger(const HttpRequest& request, std::string_view host) const;
  std::variant<Chosen, HttpResponse> choose(const HttpRequest& request);

  // http_front_calls.cc
  HttpInput input_of(const Chosen& chosen, const HttpRequest& request);
  std::string body_of(const Chosen& chosen, const HttpInput& input);
  function_rpc::HttpStreamHead head_of(const Chosen& chosen, const HttpRequest& request,
                                       const HttpInput& input) const;
  void invoke(const Chosen& chosen, HttpRequest request, const HttpAnswer& answer);
  std::string http_place(const JobHostKey& key) const;  // the capability; empty: none
  HttpResponse response_of(const Outcome& outcome, const std::string& output_binding) const;

  HttpFrontOptions options_;
  HttpFrontHost& host_;
  Random random_;
  bool is_stale_ = true;
  std::vector<JobHostKey> job_hosts_;
  std::vector<Target> targets_;
  std::map<std::string, Site, std::less<>> sites_;   // by application, in lower case
  std::map<std::string, bool, std::less<>> absent_;  // likewise, with whether a worker is assigned
  std::map<std::string, Site, std::less<>> away_;    // likewise: those of them that were here
  // By function and text: what did not change is not compiled anew.
  using Parsed = std::map<std::pair<FunctionRef, std::string>, Route>;
  Parsed parsed_;
  Parsed parsed_before_;  // while it is made anew
  bool is_awaiting_ = false;
  bool has_unseen_ = false;
  // By the request; bounded by the core's tracker.
  std::unordered_map<std::uint64_t, InvocationId> under_way_;
  std::vector<std::string> problems_;
  std::set<std::string> told_;  // of them, so that each is said once
};

}  // namespace windlass::runtime
