// Making tokens, and having the scheduler check its settings.
#include <fcntl.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/cli/commands.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {
namespace {

constexpr std::size_t kTokenBytes = 32;

std::optional<std::string> draw_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return std::nullopt;
  return base64url_encode(BytesView{reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Only its owner may read it; a file that is there stays as it is.
bool write_secret(const std::string& file, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool is_written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!is_written) complain("the file '" + file + "' cannot be written: " + std::strerror(errno));
  if (fd >= 0) ::close(fd);
  return is_written;
}

// The spelling of a TOML basic string is that of JSON's for everything a name may hold.
std::string stanza(const TokenOptions& options, const std::string& sha) {
  std::string text;
  if (options.is_admin) text += "[[token]]\n";
  if (!options.tenant.empty()) text += "[[token]]\ntenant = " + json_text(options.tenant) + '\n';
  text += "sha256 = \"" + sha + "\"\n";
  if (!options.name.empty()) text += "name = " + json_text(options.name) + '\n';
  if (!options.instance.empty()) text += "instance = " + json_text(options.instance) + '\n';
  if (options.role != "worker") text += "role = " + json_text(options.role) + '\n';
  return text;
}

}  // namespace

int new_token(const TokenOptions& options) {
  if (options.is_admin && options.name.empty()) {
    complain("--admin needs --name: the log says by it who did what");
    return kExitUsage;
  }
  if (!options.is_admin && options.tenant.empty()) {
    complain(
        "whose token is it? give --tenant NAME for a worker, an agent or a runtime, or --admin --name NAME "
        "for "
        "an operator");
    return kExitUsage;
  }
  if (options.is_admin && (!options.instance.empty() || options.role != "worker")) {
    complain("--admin is for operators, and --instance and --role are for workers: give one or the other");
    return kExitUsage;
  }
  const auto token = draw_token();
  if (!token) {
    complain("the system gives no random bytes");
    return kExitRefused;
  }
  const std::string sha = hex_encode(view_of(sha256(*token)));
  if (!options.out.empty() && !write_secret(options.out, *token + '\n')) return kExitUsage;
  if (options.json) {
    std::string text = "{\"sha256\":\"" + sha + '"';
    text += options.out.empty() ? ",\"token\":\"" + *token + '"' : ",\"file\":" + json_text(options.out);
    if (!options.tenant.empty()) text += ",\"tenant\":" + json_text(options.tenant);
    print(text + "}\n");
    return kExitOk;
  }
  if (options.out.empty()) {
    print("# The token, shown this once:\n# " + *token + "\n");
  } else {
    print("# The token is in " + printable(options.out) + "\n");
  }
  print(options.is_admin ? "# For the scheduler's admin.tokens_file:\n"
                         : "# For the scheduler's credentials file:\n");
  print(stanza(options, sha));
  return kExitOk;
}

int add_key(const std::string& file, bool json) {
  const auto secret = draw_token();
  const auto name = draw_token();
  if (!secret || !name) {
    complain("the system gives no random bytes");
    return kExitRefused;
  }
  const std::string kid = "k" + name->substr(0, 8);
  std::ifstream in{file};
  const std::string before{std::istreambuf_iterator<char>{in}, {}};
  const std::string aside = file + ".new";
  ::unlink(aside.c_str());
  if (!write_secret(aside, kid + " " + *secret + "\n" + before)) return kExitUsage;
  if (std::rename(aside.c_str(), file.c_str()) != 0) {
    complain("the file '" + file + "' cannot be replaced: " + std::strerror(errno));
    return kExitUsage;
  }
  if (json) {
    print("{\"kid\":\"" + kid + "\",\"file\":" + json_text(file) + "}\n");
  } else {
    print("key " + kid + " is now the newest of " + printable(file) + "\n");
  }
  return kExitOk;
}

int new_key(const KeyOptions& options) {
  if (!options.function.empty() && (options.application.empty() || options.is_admin)) {
    complain(options.is_admin ? "--admin is for an application, not for one function"
                              : "--function needs --app, the application that it is of");
    return kExitUsage;
  }
  const auto key = draw_token();
  if (!key) {
    complain("the system gives no random bytes");
    return kExitRefused;
  }
  const std::string sha = hex_encode(view_of(sha256(*key)));
  if (!options.out.empty() && !write_secret(options.out, *key + '\n')) return kExitUsage;
  if (options.json) {
    std::string text = "{\"sha256\":\"" + sha + '"';
    text += options.out.empty() ? ",\"key\":\"" + *key + '"' : ",\"file\":" + json_text(options.out);
    print(text + "}\n");
    return kExitOk;
  }
  print(options.out.empty() ? "# The key, shown this once:\n# " + *key + '\n'
                            : "# The key is in " + printable(options.out) + '\n');
  std::string stanza = "# For the runtime's http.keys_file:\n[[key]]\nsha256 = \"" + sha + "\"\n";
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) stanza.append(name).append(" = ").append(json_text(value)).append("\n");
  };
  add("application", options.application);
  add("function", options.function);
  add("level", options.is_admin ? "admin" : "");
  add("name", options.name);
  print(stanza);
  return kExitOk;
}

int check_config(const std::string& file) {
  constexpr const char* kProgram = "windlass-scheduler";
  std::string program;
  if (const char* const named = std::getenv("WINDLASS_SCHEDULER")) program = named;
  if (program.empty()) {
    std::error_code error;
    const auto beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / kProgram;
    program = !error && std::filesystem::exists(beside, error) ? beside.string() : kProgram;
  }
  ::execlp(program.c_str(), kProgram, "--check-config", "--config", file.c_str(),
           static_cast<char*>(nullptr));
  complain("'" + program + "' cannot be run: " + std::strerror(errno) +
           "; put it on PATH or name it in WINDLASS_SCHEDULER");
  return kExitUnreachable;
}

}  // namespace windlass::cli
