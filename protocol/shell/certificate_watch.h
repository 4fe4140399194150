// Says in time when a certificate of our own is about to expire: in the log, and as a number that an alert
// can compare with now. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/shell/json_log.h"

namespace windlass {

inline constexpr Duration kCertificateNotice = std::chrono::hours{30 * 24};  // the log warns so long before
inline constexpr Duration kCertificateLook = std::chrono::hours{1};          // between two looks

class CertificateWatch final {
 public:
  // Told at each look: which certificate, and when it expires in seconds since 1970.
  using Tell = std::function<void(const std::string& what, double expires)>;

  CertificateWatch(EventLoop& loop, JsonLog& log, Tell tell);

  // `tls` must outlive the watch; one without a certificate of its own is left out.
  void add(std::string what, const TlsContext* tls);
  // Looks now, and again every hour. Called again when certificates were read again.
  void look();

 private:
  struct Watched {
    std::string what;
    const TlsContext* tls;
  };

  EventLoop& loop_;
  JsonLog& log_;
  Tell tell_;
  std::vector<Watched> watched_;
  LoopAlarm alarm_;
};

}  // namespace windlass
