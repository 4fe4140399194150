// What operators may ask the scheduler over REST: workers, commands, messages, health and metrics.
// docs/openapi.json describes every route. Reads are answered from the core's memory, where only what is
// durable shows; changes when they are durable. Runs on the control loop.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http/http_message.h"
#include "protocol/shell/json_log.h"
#include "scheduler/shell/control.h"

namespace windlass {

class PackageDesk;

struct AdminOptions {
  bool metrics_are_open = false;    // /metrics without a token, for a scraper that has none
  std::string version = {};         // told by /healthz
  PackageDesk* packages = nullptr;  // none: nothing can be deployed; must outlive the API
  JsonLog* log = nullptr;           // one line per change asked for; must outlive the API
};

class AdminCalls;

struct AdminRoute {
  std::string_view method;
  std::string_view path;  // with {names}, as in docs/openapi.json
};

class AdminApi final : public HttpHandler {
 public:
  // Both must outlive the API, which must not be destroyed while the loop runs.
  AdminApi(Control& control, Metrics& metrics, AdminOptions options);
  ~AdminApi() override;
  AdminApi(const AdminApi&) = delete;
  AdminApi& operator=(const AdminApi&) = delete;

  void handle(HttpRequest request, HttpAnswer answer) override;
  void handle_gone(std::uint64_t request) override;
  bool is_probe(const HttpRequest& request) const override;

  // Loop thread only: /readyz says no from now on, and whoever waits for a command is answered.
  void start_draining();

  static std::vector<AdminRoute> routes();

 private:
  std::unique_ptr<AdminCalls> calls_;
};

}  // namespace windlass
