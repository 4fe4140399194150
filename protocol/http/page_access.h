// Who may read a program's own pages, /metrics and /status: whoever has the token, where one is set; else, on
// this machine, the program's user and root. Without that, functions that run as another user could read what
// all others do.
#pragma once

#include <optional>
#include <string_view>

#include "protocol/http/http_message.h"

namespace windlass {

struct PageAccess {
  bool has_tokens = false;
  bool is_open = false;    // to everybody, if there is no token
  std::string_view table;  // of the settings: "admin"
};

// Nothing, or the answer for somebody who may not.
std::optional<HttpResponse> page_refusal(const PageAccess& access, const HttpRequest& request);

}  // namespace windlass
