// HTTP requests to httpTrigger functions and their answers back. Knows routes and codes; who runs a function
// is its owner's to say. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/crypto/digest.h"
#include "protocol/http/http_message.h"
#include "runtime/adapters/http_asked.h"
#include "runtime/adapters/http_routes.h"
#include "runtime/adapters/rpc_values.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

struct HttpFrontOptions {
  bool shows_errors = false;  // why a function failed stands in the answer; else in the log alone
  // Functions that are not anonymous want this key, in x-functions-key or ?code=. None: see is_private.
  std::optional<Digest> key = {};
  bool is_private = true;  // without a key: only this machine can reach us, so all functions are served
  std::string scheme = "http";
};

// What the front has done for it.
class HttpFrontHost {
 public:
  virtual ~HttpFrontHost() = default;
  struct Application {
    JobHostKey key;
    std::string route_prefix;
    std::vector<FunctionRef> functions;
  };
  // Asked again whenever handle_changed() was called.
  virtual std::vector<Application> http_applications() = 0;
  virtual const TextMap* http_capabilities(const JobHostKey& key) = 0;
  struct Call {
    JobHostKey job_host;
    std::string function;
    std::shared_ptr<const std::string> body;  // shared with the retries
    TraceContext trace;
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
  // The host must outlive the front.
  HttpFront(HttpFrontOptions options, HttpFrontHost& host, std::uint64_t seed);
  ~HttpFront() override;

  std::optional<HttpResponse> refuse(const HttpRequest& head) override;
  void handle(HttpRequest request, HttpAnswer answer) override;
  void handle_gone(std::uint64_t request) override;
  // Functions or applications are others than before.
  void handle_changed() { is_stale_ = true; }
  void set_key(const Digest& key) { options_.key = key; }
  // What is wrong with routes, one sentence each; for the log.
  std::vector<std::string> poll_problems() { return std::exchange(problems_, {}); }

 private:
  struct Target {
    JobHostKey job_host;
    FunctionRef function;
    std::string trigger;
    std::string output;
    bool is_anonymous = false;
  };
  struct Site {
    std::string application;
    RouteTable routes;
  };
  struct Chosen;

  void refresh();
  void add(Site& site, const HttpFrontHost::Application& application, const FunctionRef& function);
  RouteTable::Found find(const std::vector<std::string>& segments, std::string_view host,
                         std::string_view method) const;
  bool is_allowed(const Target& target, const HttpRequest& request, const HttpQuery& query) const;
  std::variant<Chosen, HttpResponse> choose(const HttpRequest& request);
  void invoke(Chosen chosen, HttpRequest request, const HttpAnswer& answer);
  HttpResponse response_of(const Outcome& outcome, const std::string& output_binding) const;

  HttpFrontOptions options_;
  HttpFrontHost& host_;
  Random random_;
  bool is_stale_ = true;
  std::vector<Target> targets_;
  std::map<std::string, Site, std::less<>> sites_;  // by application, in lower case
  // By the request; bounded by the core's tracker.
  std::unordered_map<std::uint64_t, InvocationId> under_way_;
  std::vector<std::string> problems_;
};

}  // namespace windlass::runtime
