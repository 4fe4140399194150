#include "scheduler/cli/admin.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "protocol/crypto/percent_encoding.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {
namespace {

constexpr const char* kDefaultUrl = "http://127.0.0.1:7480";

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

// The first line of the file.
std::optional<std::string> read_token(const std::string& file) {
  std::ifstream in{file};
  std::string token;
  if (!in || !std::getline(in, token) || token.empty()) return std::nullopt;
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  return token;
}

bool others_may_read(const std::string& file) {
  struct stat facts {};
  return ::stat(file.c_str(), &facts) == 0 && (facts.st_mode & S_IROTH) != 0;
}

// Of "http://HOST:PORT/": whether HOST is this machine.
bool is_this_machine(std::string_view url) {
  url.remove_prefix(std::string_view{"http://"}.size());
  std::string_view host = url.substr(0, url.find_first_of("/?#"));
  host = host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

}  // namespace

void complain(std::string_view what) {
  std::fprintf(stderr, "windlass: %s\n", printable_lines(what).c_str());
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string Name::path() const {
  return percent_encode(tenant) + '/' + percent_encode(id);
}

std::optional<Name> parse_name(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
    complain("'" + text + "' does not name anything: write TENANT/ID, as in acme/worker-1");
    return std::nullopt;
  }
  return Name{text.substr(0, slash), text.substr(slash + 1)};
}

std::string Admin::url() const {
  if (!settings_.url.empty()) return settings_.url;
  const std::string url = environment("WINDLASS_ADMIN_URL");
  return url.empty() ? kDefaultUrl : url;
}

bool Admin::connect() {
  if (client_) return true;
  ClientOptions options;
  options.url = url();
  options.authority_file =
      settings_.authority_file.empty() ? environment("WINDLASS_ADMIN_CA") : settings_.authority_file;
  options.patience =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>{settings_.patience_s});
  options.token = environment("WINDLASS_ADMIN_TOKEN");
  if (!settings_.token_file.empty()) {
    auto token = read_token(settings_.token_file);
    if (!token) {
      complain("the token file '" + settings_.token_file + "' cannot be read or is empty");
      exit_code_ = kExitUsage;
      return false;
    }
    if (others_may_read(settings_.token_file)) {
      complain("the token file '" + settings_.token_file +
               "' lets every user of this machine read it; run chmod o-rwx on it");
    }
    options.token = std::move(*token);
  }
  if (!options.token.empty() && options.url.starts_with("http://") && !is_this_machine(options.url) &&
      !settings_.clear_text) {
    complain("the admin token would go to " + options.url +
             " in clear text, for everybody on the way to read; use https://, or give --clear-text");
    exit_code_ = kExitUsage;
    return false;
  }
  auto client = HttpClient::create(std::move(options));
  if (!client) {
    complain(client.error().reason);
    exit_code_ = kExitUsage;
    return false;
  }
  client_ = std::move(*client);
  return true;
}

std::string Admin::token_refused(const std::string& code) const {
  const bool has_file = !settings_.token_file.empty();
  if (!has_file && environment("WINDLASS_ADMIN_TOKEN").empty()) {
    return url() + " wants an admin token (" + code + "): set WINDLASS_ADMIN_TOKEN, or give --token-file";
  }
  return "the admin token " + (has_file ? "in '" + settings_.token_file + "'" : "in WINDLASS_ADMIN_TOKEN") +
         " is not one of " + url() + "'s (" + code +
         "): its settings name the right one, in admin.token_file or admin.tokens_file";
}

std::optional<bool> Admin::has(const std::string& target) {
  if (!connect()) return std::nullopt;
  const auto response = client_->ask({.target = target});
  if (response && response->status == 200) return true;
  return response && response->status == 404 ? std::optional{false} : std::nullopt;
}

std::optional<Json> Admin::ask(const ClientRequest& request) {
  if (!connect()) return std::nullopt;
  auto response = client_->ask(request);
  if (!response) {
    complain(response.error().reason);
    exit_code_ = kExitUnreachable;
    return std::nullopt;
  }
  body_ = std::move(response->body);
  auto json = Json::parse(body_);
  if (response->status >= 200 && response->status < 300 && json) return json;
  exit_code_ = kExitRefused;
  if (!json || !json->has("/detail")) {
    complain("the answer of " + url() + " (status " + std::to_string(response->status) +
             ") is not one of a scheduler's admin listener; give the address of admin.listen with --url");
    return std::nullopt;
  }
  if (settings_.json) print(body_);
  complain(response->status == 401 ? token_refused(json->text("/code"))
                                   : json->text("/detail") + " (" + json->text("/code") + ")");
  return std::nullopt;
}

}  // namespace windlass::cli
