// Which runtimes an agent lets itself be sent to. It shows them its token, so whoever speaks to it over TLS
// does not send it where others can listen.
#pragma once

#include <string_view>

#include "protocol/base/result.h"

namespace windlass::agent {

inline bool is_secure_url(std::string_view url) {
  return url.starts_with("wss://") || url.starts_with("https://");
}

// `own_url` is that of its settings, which its operator answers for; `needs_tls`: its scheduler is reached by
// TLS.
inline Result<Done> check_runtime_choice(std::string_view url, std::string_view own_url, bool needs_tls) {
  if (!needs_tls || is_secure_url(url) || url == own_url) return Done{};
  return Error{ErrorCode::SessionDenied, Blame::Peer,
               "the runtime at " + std::string{url} +
                   " is reached in clear text, and this agent's scheduler by TLS; give the runtime a "
                   "certificate, or name it as runtime.url in the agent's settings"};
}

}  // namespace windlass::agent
