// The runtime's own certificates: when they expire, and what happens when their files change.
#include <utility>

#include "protocol/adapters/certificate.h"
#include "runtime/shell/runtime.h"

namespace windlass::runtime {

void Runtime::watch_certificates() {
  certificates_.add("tls", tls_.get());
  certificates_.add("http", http_tls_.get());
  certificates_.add("admin", admin_tls_.get());
  certificates_.add("grpc", grpc_tls_.get());
  if (scheduler_) certificates_.add("scheduler", scheduler_->tls());
  certificates_.look();
}

Result<Done> Runtime::reload_certificate(TlsContext& tls) {
  auto reloaded = tls.reload();
  if (reloaded) certificates_.look();
  return reloaded;
}

Result<Done> Runtime::reload_scheduler_tls() {
  const SchedulerSettings& settings = *config_.scheduler;
  std::string fingerprint;
  if (settings.tls->identity) {
    auto read = certificate_fingerprint(settings.tls->identity->certificate_file);
    if (!read) return read.error();
    fingerprint = *std::move(read);
  }
  auto reloaded = scheduler_->reload_tls(std::move(fingerprint));
  if (reloaded) certificates_.look();
  return reloaded;
}

}  // namespace windlass::runtime
