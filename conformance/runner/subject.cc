#include "conformance/runner/subject.h"

#include <netdb.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "conformance/runner/identity.h"
#include "conformance/runner/process.h"

namespace windlass::conformance {
namespace {

constexpr auto kProbeFor = std::chrono::seconds{10};

Error misuse(std::string reason, SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, std::move(reason), where};
}

Result<std::string> secret_of(const std::string& path) {
  if (path.empty()) return std::string{};
  auto text = read_text_file(path);
  if (!text) return text.error();
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  return text;
}

struct Url {
  bool is_secure = true;
  std::string host;
  std::string port;
  std::string path;
};

Result<Url> parse_url(const std::string& text) {
  Url url;
  std::string_view rest = text;
  if (rest.starts_with("wss://")) {
    rest.remove_prefix(6);
  } else if (rest.starts_with("ws://")) {
    rest.remove_prefix(5);
    url.is_secure = false;
  } else {
    return misuse("the URL " + text + " must begin with wss:// or ws://");
  }
  const std::size_t slash = rest.find('/');
  url.path = slash == rest.npos ? "/ws/worker" : std::string{rest.substr(slash)};
  std::string_view authority = rest.substr(0, slash);
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != authority.npos && authority.find(']', colon) == authority.npos;
  url.port = has_port ? std::string{authority.substr(colon + 1)} : url.is_secure ? "443" : "80";
  url.host = std::string{authority.substr(0, has_port ? colon : authority.npos)};
  if (url.host.starts_with('[')) url.host = url.host.substr(1, url.host.size() - 2);
  if (url.host.empty()) return misuse("the URL " + text + " names no host");
  return url;
}

Result<SocketAddress> resolve(const Url& url) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int wrong = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found); wrong != 0) {
    return misuse("the host " + url.host + " cannot be found: " + ::gai_strerror(wrong));
  }
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

Result<Done> point_at_scheduler(Setup& setup, const Options& options) {
  const auto url = parse_url(options.url);
  if (!url) return url.error();
  auto address = resolve(*url);
  if (!address) return address.error();
  setup.address = *address;
  setup.path = url->path;
  setup.host =
      (url->host.find(':') == std::string::npos ? url->host : "[" + url->host + "]") + ":" + url->port;
  setup.hooks = options.hooks;
  if (!url->is_secure) return Done{};
  auto bare = TlsContext::client({.authority_file = options.authority_file});
  if (!bare) return bare.error();
  setup.tls_without_certificate = std::move(*bare);
  setup.tls = setup.tls_without_certificate;
  if (options.certificate_file.empty()) return Done{};
  auto full = TlsContext::client({.authority_file = options.authority_file,
                                  .identity = TlsIdentity{options.certificate_file, options.key_file}});
  if (!full) return full.error();
  setup.tls = std::move(*full);
  setup.has_client_certificate = true;
  return Done{};
}

Result<Done> listen_for_worker(Setup& setup, const Options& options, const std::string& folder) {
  const auto identity = make_identity(folder);
  if (!identity) return identity.error();
  auto tls = TlsContext::server({.identity = {identity->certificate_file, identity->key_file}});
  if (!tls) return tls.error();
  setup.server_tls = std::move(*tls);
  setup.authority_file = identity->certificate_file;
  setup.command = options.command;
  if (setup.token.empty()) setup.token = "conformance-token";
  return Done{};
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream stream{path, std::ios::binary};
  if (!stream) return misuse("the file " + path + " cannot be read: " + std::strerror(errno));
  return std::string{std::istreambuf_iterator<char>{stream}, {}};
}

Result<Setup> make_setup(const Options& options, const WireSchemas& schemas, const std::string& folder) {
  Setup setup;
  setup.role = options.url.empty() ? Role::Worker : Role::Scheduler;
  setup.schemas = &schemas;
  setup.tenant = options.tenant;
  auto token = secret_of(options.token_file);
  if (!token) return token.error();
  setup.token = *token;
  auto runtime = secret_of(options.runtime_token_file);
  if (!runtime) return runtime.error();
  setup.runtime_token = runtime->empty() ? setup.token : *runtime;
  auto other = secret_of(options.other_token_file);
  if (!other) return other.error();
  setup.other_token = *other;
  const auto done = setup.role == Role::Scheduler ? point_at_scheduler(setup, options)
                                                  : listen_for_worker(setup, options, folder);
  if (!done) return done.error();
  return setup;
}

Result<Done> probe_worker(const Setup& setup, const std::string& folder) {
  Process process{setup.command,
                  {{"CASE", "made-up-by-conformance"},
                   {"WINDLASS_URL", "wss://127.0.0.1:9/ws/worker"},
                   {"WINDLASS_TOKEN", setup.token},
                   {"WINDLASS_CA", setup.authority_file},
                   {"WINDLASS_TENANT", setup.tenant},
                   {"WINDLASS_INSTANCE", "c-probe"},
                   {"WINDLASS_REVISION", "2"},
                   {"WINDLASS_STATE", folder}},
                  folder + "/probe.log"};
  const auto until = std::chrono::steady_clock::now() + kProbeFor;
  while (!process.exit_code() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  const auto code = process.exit_code();
  if (code == 127) return Done{};
  return misuse("the worker was asked for a CASE that does not exist and " +
                (code ? "ended with exit code " + std::to_string(*code) : std::string{"went on"}) +
                "; it must end with exit code 127, see docs/conformance.md");
}

}  // namespace windlass::conformance
