// Asks the scheduler's admin listener, one request at a time, and waits for the answer. Hides Boost.Beast,
// which is slow to compile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "protocol/base/result.h"
#include "protocol/base/time.h"

namespace windlass::cli {

struct ClientOptions {
  std::string url;                  // http://127.0.0.1:7480 or https://...
  std::string token = {};           // empty: none is sent
  std::string authority_file = {};  // for https; empty: the system's authorities
  Duration patience = seconds{10};  // for connecting and for an answer, beside what the request itself waits
};

struct ClientRequest {
  std::string method = "GET";
  std::string target;
  std::string body = {};
  Duration wait{};  // how long the listener may hold the request
};

struct ClientResponse {
  unsigned status = 0;
  std::string body;
};

class HttpClient final {
 public:
  // An error says what is wrong with the URL or the authority file.
  static Result<std::unique_ptr<HttpClient>> create(ClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // An error says why there is no answer: nobody listens, it took too long, TLS failed.
  Result<ClientResponse> ask(const ClientRequest& request);

 private:
  struct Inside;
  explicit HttpClient(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace windlass::cli
