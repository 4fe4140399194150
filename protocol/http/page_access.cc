#include "protocol/http/page_access.h"

#include <string>

namespace windlass {

std::optional<HttpResponse> page_refusal(const PageAccess& access, const HttpRequest& request) {
  const std::string table = "[" + std::string{access.table} + "]";
  if (access.has_tokens) {
    if (request.is_authorized) return std::nullopt;
    HttpResponse refusal =
        to_response({401, request.has_token ? "E.AUTH.INVALID_TOKEN" : "E.AUTH.MISSING_TOKEN",
                     "send the token of " + table + " as 'Authorization: Bearer ...'"});
    refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refusal;
  }
  if (access.is_open || !request.is_stranger) return std::nullopt;
  return to_response({403, "E.HTTP.STRANGER",
                      "without a token only root and the user of this program may ask, by an address or as "
                      "localhost; set token_file in " +
                          table + " and send that token, or set open = true there"});
}

}  // namespace windlass
