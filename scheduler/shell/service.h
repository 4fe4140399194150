// windlass-scheduler as one object: wires store, core, loops, admin and signals by constructor, runs them,
// and takes them down in order. Decides nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/shell/certificate_watch.h"
#include "protocol/shell/credentials.h"
#include "protocol/shell/key_rotation.h"
#include "protocol/shell/reloader.h"
#include "scheduler/adapters/metrics.h"
#include "scheduler/shell/config.h"
#include "scheduler/shell/control.h"
#include "scheduler/shell/package_desk.h"
#include "scheduler/shell/session_loop.h"

namespace windlass {

// Whether the files that the settings name can be used. Opens no socket and changes nothing; an error is one
// sentence that names the file.
Result<Done> check_files(const ServiceConfig& config);

class Service final {
 public:
  // Everything is open and listening when it returns, but nothing runs. The error is one sentence.
  // `store` stands for the configured one, if given.
  static Result<std::unique_ptr<Service>> create(ServiceConfig config, JsonLog& log,
                                                 std::unique_ptr<StateStore> store = nullptr);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Until stopped. The calling thread becomes the control thread. Gives the process's exit code: not zero if
  // it stopped by itself, because its store belongs to another scheduler.
  int run();

  // From any thread. The first call drains: sessions are told to come back later, spread over the drain
  // window; the second stops at once.
  void stop();
  // Tokens, keys, certificates and the terms of tenants anew, without dropping a session, as also happens
  // when their files change. What cannot be read stays as it was, and the log says why.
  void reload();

  std::uint16_t port() const { return loops_.front()->port(); }
  std::uint16_t admin_port() const;

 private:
  struct Admin;
  Service(ServiceConfig config, JsonLog& log);
  Result<Done> open(std::unique_ptr<StateStore> store);
  Result<Done> open_store(std::unique_ptr<StateStore> store);
  Result<std::unique_ptr<StateStore>> open_sealed_store();
  Result<Done> open_packages();
  Result<Done> open_loops(const std::vector<SigningKey>& keys);
  Result<Done> open_admin();
  void handle_stop();
  void handle_fenced(const StoreHealth& store);
  void finish();
  std::string keys_file() const;  // empty: keys are made, and end with the process
  Result<std::vector<SigningKey>> first_keys() const;
  void watch_files();
  Result<Done> reload_credentials();
  Result<Done> reload_tenants();
  Result<Done> reload_keys();
  Result<Done> reload_admin_tokens();
  Result<Done> reload_certificate(TlsContext& tls);

  ServiceConfig config_;
  JsonLog& log_;
  Metrics metrics_;
  EventLoop control_loop_;
  Reloader reloader_;
  CertificateWatch certificates_;
  LiveTenants tenants_;
  std::unique_ptr<LiveAdmission> admission_;
  std::unique_ptr<KeyRotation> key_rotation_;
  DeniedInstances denied_;
  RuntimeIds runtime_ids_;
  std::unique_ptr<DenyingAdmission> gate_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<TlsContext> admin_tls_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<PackageDesk> packages_;
  std::vector<std::unique_ptr<SessionLoop>> loops_;
  std::unique_ptr<Admin> admin_;
  std::unique_ptr<LoopAlarm> deadline_;  // of the drain
  std::vector<std::jthread> threads_;
  std::size_t draining_ = 0;
  bool stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace windlass
