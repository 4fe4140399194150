// The scheduler as the commands see it: asks, prints why not, and says with which code to exit.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/cli/http_client.h"
#include "scheduler/cli/json_value.h"

namespace windlass::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;  // the scheduler or the worker said no
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnreachable = 3;

struct Settings {
  std::string url = {};             // empty: WINDLASS_ADMIN_URL, or the scheduler's default on this machine
  std::string token_file = {};      // empty: WINDLASS_ADMIN_TOKEN
  std::string authority_file = {};  // for https
  bool clear_text = false;          // the token may go over http:// to another machine
  double patience_s = 10;
  bool json = false;
};

// "windlass: ..." on standard error.
void complain(std::string_view what);
void print(std::string_view text);

// "acme/w-1": the first slash divides. Complains and gives nothing when there is none.
struct Name {
  std::string tenant;
  std::string id;
  std::string path() const;  // escaped, with a slash between
};
std::optional<Name> parse_name(const std::string& text);

class Admin final {
 public:
  explicit Admin(Settings settings) : settings_(std::move(settings)) {}

  // The answer, or nothing: then the reason was printed, and exit_code() says how it failed.
  std::optional<Json> ask(const ClientRequest& request);
  // Whether there is something at this path, asked without a word; nothing: that cannot be told.
  std::optional<bool> has(const std::string& target);
  int exit_code() const { return exit_code_; }
  const std::string& body() const { return body_; }  // of the last answer
  bool wants_json() const { return settings_.json; }
  std::string url() const;

 private:
  bool connect();
  std::string token_refused(const std::string& code) const;

  Settings settings_;
  std::unique_ptr<HttpClient> client_;
  std::string body_;
  int exit_code_ = kExitOk;
};

}  // namespace windlass::cli
