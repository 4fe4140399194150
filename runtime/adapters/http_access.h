// Who may call which function over HTTP: keys, names that a request may call this server by, and web pages
// of other origins. Pure; knows digests of keys, never keys.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/crypto/digest.h"
#include "runtime/adapters/rpc_values.h"

namespace windlass::runtime {

enum class AuthLevel : std::uint8_t { Anonymous, Function, Admin };

// As Azure Functions has them: a function's key opens that function, a host key all functions of its
// application, an admin key those of level admin too.
struct HttpKeys {
  struct Application {
    std::vector<Digest> admin = {};
    std::vector<Digest> host = {};
    std::map<std::string, std::vector<Digest>, std::less<>> functions = {};  // by name in lower case
  };
  Application everywhere = {};                                        // its functions are none
  std::map<std::string, Application, std::less<>> applications = {};  // by id in lower case
  bool is_empty() const;
};

// A function, and what it wants.
struct HttpDoor {
  std::string application;
  std::string function;
  AuthLevel level = AuthLevel::Function;
};
// Takes the same time whichever of the keys it is.
bool opens(const HttpKeys& keys, const HttpDoor& door, std::string_view shown);

// Names by which requests may call this server, so that no name of a stranger's that leads here is served.
// Addresses and the names of this machine's loopback always may.
class HttpHosts final {
 public:
  // "api.example.com", "*.example.com" (and what is before it, at any depth), "*".
  explicit HttpHosts(std::vector<std::string> names = {});
  bool allows(std::string_view host) const;  // as the header has it, in lower case

 private:
  std::vector<std::string> names_;
};

// Web pages that may call functions. Requests without an origin are no web page's.
class HttpOrigins final {
 public:
  explicit HttpOrigins(std::vector<std::string> origins = {}, bool with_credentials = false);  // "*": all
  bool allows(std::string_view origin, std::string_view own) const;
  // For the answer; none without an origin.
  TextPairs headers(std::string_view origin) const;
  TextPairs preflight_headers(std::string_view origin, std::string_view wanted_headers) const;

 private:
  bool names(std::string_view origin) const;

  std::vector<std::string> origins_;
  bool with_credentials_;
};

}  // namespace windlass::runtime
