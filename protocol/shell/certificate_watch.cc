#include "protocol/shell/certificate_watch.h"

#include <chrono>
#include <utility>

namespace windlass {

CertificateWatch::CertificateWatch(EventLoop& loop, JsonLog& log, Tell tell)
    : loop_(loop), log_(log), tell_(std::move(tell)), alarm_(loop, [this] { look(); }) {}

void CertificateWatch::add(std::string what, const TlsContext* tls) {
  if (tls != nullptr && tls->expires()) watched_.push_back({std::move(what), tls});
}

void CertificateWatch::look() {
  const Now now = loop_.now();
  for (const Watched& each : watched_) {
    const auto expires = each.tls->expires();
    if (!expires) continue;
    tell_(each.what, std::chrono::duration<double>(expires->time_since_epoch()).count());
    const auto left = *expires - now.wall;
    if (left <= milliseconds{0}) {
      log_.error("a certificate has expired; peers refuse it until it is renewed",
                 {{"certificate", each.what}});
    } else if (left <= kCertificateNotice) {
      const auto days = std::chrono::floor<std::chrono::days>(left).count();
      log_.warn("a certificate expires soon; renew it",
                {{"certificate", each.what}, {"days_left", static_cast<std::uint64_t>(days)}});
    }
  }
  alarm_.set(now.steady + kCertificateLook);
}

}  // namespace windlass
