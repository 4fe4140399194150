// windlass deploy: a folder or a zip, looked through, uploaded in pieces, and made known.
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/crypto/percent_encoding.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/cli/app_commands.h"
#include "scheduler/cli/package_identity.h"
#include "scheduler/cli/package_zip.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = limits::kAdminBodyBytesMax;
constexpr int kPieceTriesMax = 3;

// A zip that is ours to make, and gone with this.
class ZipFile final {
 public:
  explicit ZipFile(std::string path, bool is_ours) : path_(std::move(path)), is_ours_(is_ours) {}
  ~ZipFile() {
    std::error_code ignored;
    if (is_ours_) fs::remove(path_, ignored);
  }
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_ours_;
};

std::string temporary_path() {
  std::error_code ignored;
  std::string path = (fs::temp_directory_path(ignored) / "windlass-deploy-XXXXXX").string();
  const int fd = ::mkstemp(path.data());
  if (fd >= 0) ::close(fd);
  return fd >= 0 ? path : std::string{};
}

std::unique_ptr<ZipFile> zip_of(const DeployOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(options.path, error);
  if (fs::is_regular_file(status)) return std::make_unique<ZipFile>(options.path, false);
  if (!fs::is_directory(status)) {
    complain("there is no folder or zip file '" + options.path + "'");
    return nullptr;
  }
  auto zip = options.keep_zip.empty() ? std::make_unique<ZipFile>(temporary_path(), true)
                                      : std::make_unique<ZipFile>(options.keep_zip, false);
  if (const auto written = write_zip(options.path, zip->path()); !written) {
    complain(written.error().reason);
    return nullptr;
  }
  return zip;
}

std::optional<std::string> file_digest(const std::string& file) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
  std::ifstream in{file, std::ios::binary};
  if (!in || !context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) return std::nullopt;
  std::string block(64 * 1024, '\0');
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    EVP_DigestUpdate(context.get(), block.data(), static_cast<std::size_t>(in.gcount()));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), hash.data(), &size);
  return hex_encode(BytesView{reinterpret_cast<const char*>(hash.data()), size});
}

// A flat object of texts, or one in the form of local.settings.json, whose "Values" count.
bool read_settings_file(const std::string& file, std::map<std::string, std::string>& settings) {
  std::ifstream in{file, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  const auto json = Json::parse(text);
  if (!in || !json || !json->is_object()) {
    complain("the settings file '" + file + "' cannot be read, or is not a JSON object");
    return false;
  }
  const bool has_values = json->has("/Values");
  for (const std::string& name : json->names(has_values ? "/Values" : "")) {
    std::string pointer = has_values ? "/Values/" : "/";
    for (const char c : name) pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    settings[name] = json->text(pointer);
  }
  return true;
}

bool is_twice(const DeployOptions& options, const std::map<std::string, std::string>& settings) {
  std::set<std::string> unset;
  for (const std::string& name : options.unset) {
    if (!settings.contains(name) && unset.insert(name).second) continue;
    complain("--unset " + name + " is given twice, or beside a value for it; give one of them");
    return true;
  }
  return false;
}

bool read_settings(const DeployOptions& options, std::map<std::string, std::string>& settings) {
  if (!options.settings_file.empty() && !read_settings_file(options.settings_file, settings)) return false;
  for (const std::string& each : options.settings) {
    const std::size_t equals = each.find('=');
    const std::string name = each.substr(0, equals);
    if (name.empty()) {
      complain("a setting is written NAME=VALUE, or NAME to take it from the environment");
      return false;
    }
    if (equals != std::string::npos) {
      settings[name] = each.substr(equals + 1);
      continue;
    }
    // The command line can be read by every user of the machine; the environment cannot.
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) {
      complain("--setting " + name + " has no value, and the environment has no " + name);
      return false;
    }
    settings[name] = value;
  }
  return true;
}

// The tenant to deploy for: named, or the only one that the fleet knows.
std::optional<std::string> tenant_for(Admin& admin, const AppName& app, int& exit_code) {
  if (std::string tenant = given_tenant(app.tenant); !tenant.empty()) return tenant;
  const auto workers = admin.ask({.target = "/v1/workers?limit=1000"});
  if (!workers) {
    exit_code = admin.exit_code();
    return std::nullopt;
  }
  std::set<std::string> tenants;
  for (const Json& each : workers->list("/workers")) tenants.insert(each.text("/tenant"));
  if (tenants.size() == 1) return *tenants.begin();
  complain(tenants.empty() ? "no worker is connected, so the tenant must be said: --tenant NAME"
                           : "there are several tenants; say which one: --tenant NAME");
  exit_code = kExitUsage;
  return std::nullopt;
}

// Goes on where an earlier try ended. Pieces that were lost on the way are sent again.
bool upload(Admin& admin, const std::string& file, const std::string& digest) {
  std::error_code error;
  const std::uint64_t total = fs::file_size(file, error);
  const std::string target = "/v1/packages/" + digest;
  auto progress = admin.ask({.target = target});
  std::ifstream in{file, std::ios::binary};
  const bool shows = ::isatty(STDERR_FILENO) == 1 && total > 8 * kPieceBytes;
  int tries = 0;
  while (progress && progress->text("/complete") != "true") {
    const auto offset = static_cast<std::uint64_t>(progress->number("/next"));
    if (offset >= total && total > 0 && ++tries > kPieceTriesMax) break;
    const std::uint64_t at = offset >= total ? 0 : offset;
    std::string piece(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, total - at)), '\0');
    in.clear();
    in.seekg(static_cast<std::streamoff>(at));
    if (!in.read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
      complain("'" + file + "' cannot be read");
      return false;
    }
    progress =
        admin.ask({.method = "PUT",
                   .target = target + "?offset=" + std::to_string(at) + "&total=" + std::to_string(total),
                   .body = std::move(piece),
                   .wait = seconds{60}});
    if (shows && progress) {
      std::fprintf(stderr, "\ruploaded %3.0f%%",
                   100.0 * progress->number("/next") / static_cast<double>(total));
    }
  }
  if (shows) std::fputs("\r\033[K", stderr);
  return progress.has_value();
}

std::string deploy_body(const PackageIdentity& identity, const std::string& digest,
                        const std::map<std::string, std::string>& settings,
                        const std::vector<std::string>& unset) {
  std::string body = "{\"code_version\":" + json_text(identity.code_version) +
                     ",\"metadata_version\":" + json_text(identity.metadata_version) +
                     ",\"language\":" + json_text(identity.language) + ",\"digest\":" + json_text(digest) +
                     ",\"settings\":{";
  for (const auto& [name, value] : settings) body += json_text(name) + ':' + json_text(value) + ',';
  for (const std::string& name : unset) body += json_text(name) + ":null,";
  if (body.back() == ',') body.pop_back();
  return body + "}}";
}

// Taken apart here so that a folder, a zip and a dry run are judged alike.
std::optional<PackageIdentity> judge(const DeployOptions& options, const ZipFile& zip, std::string& digest) {
  std::error_code ignored;
  if (fs::is_directory(options.path, ignored) && !fs::exists(fs::path{options.path} / "host.json", ignored)) {
    complain("'" + options.path +
             "' cannot be deployed: there is no host.json in this folder, so it is no function application");
    return std::nullopt;
  }
  const auto contents = inspect_zip(zip.path());
  if (!contents) {
    complain(contents.error().reason);
    return std::nullopt;
  }
  const auto hash = file_digest(zip.path());
  if (!hash) {
    complain("'" + zip.path() + "' cannot be read");
    return std::nullopt;
  }
  digest = *hash;
  auto identity = identify_package(*contents, digest, options.language);
  if (!identity) {
    complain("'" + options.path + "' cannot be deployed: " + identity.error().reason);
    return std::nullopt;
  }
  if (!options.code_version.empty()) identity->code_version = options.code_version;
  if (!options.metadata_version.empty()) identity->metadata_version = options.metadata_version;
  return *identity;
}

// The application as it is now; nothing where it is not deployed, or after a complaint. Remarks on a tenant
// of whom nothing is known, which may be misspelt.
std::optional<Json> find_deployed(Admin& admin, const Name& name) {
  const auto apps = admin.ask({.target = "/v1/apps?tenant=" + percent_encode(name.tenant)});
  if (!apps) return std::nullopt;
  const auto all = apps->list("/apps");
  for (const Json& each : all) {
    if (each.text("/application_id") == name.id) return each;
  }
  if (!all.empty()) return std::nullopt;
  const auto workers = admin.ask({.target = "/v1/workers?limit=1&tenant=" + percent_encode(name.tenant)});
  if (workers && workers->list("/workers").empty()) {
    complain("tenant '" + name.tenant +
             "' has no application, worker or runtime yet; if that is not its name, " + "windlass undeploy " +
             name.tenant + '/' + name.id + " takes this back");
  }
  return std::nullopt;
}

std::size_t workers_of(const Json& app, const std::string& code_version) {
  const auto assignments = app.list("/assignments");
  return static_cast<std::size_t>(std::ranges::count_if(assignments, [&](const Json& each) {
    return each.text("/code_version") == code_version && each.text("/wanted") == "true";
  }));
}

std::optional<Json> find_version(const std::optional<Json>& app, const std::string& code_version) {
  if (!app) return std::nullopt;
  for (const Json& each : app->list("/versions")) {
    if (each.text("/code_version") == code_version) return each;
  }
  return std::nullopt;
}

// Where no code version is named and the same package is deployed already, that version is meant: the one
// that serves, or else the newest. A second one of the same content would change nothing for those who call
// it.
void take_known_version(const DeployOptions& options, const std::string& digest, const Json& app,
                        PackageIdentity& identity) {
  if (!options.code_version.empty()) return;
  std::optional<Json> chosen;
  bool is_serving = false;
  for (const Json& each : app.list("/versions")) {  // the newest last
    const std::string metadata = each.text("/metadata_version");
    const bool is_same = each.text("/digest") == digest && each.text("/language") == identity.language &&
                         (options.metadata_version.empty() || metadata == options.metadata_version);
    const bool serves =
        metadata == app.text("/active_metadata_version") && workers_of(app, each.text("/code_version")) > 0;
    if (!is_same || (is_serving && !serves)) continue;
    chosen = each;
    is_serving = serves;
  }
  if (!chosen) return;
  identity.code_version = chosen->text("/code_version");
  identity.metadata_version = chosen->text("/metadata_version");
}

// What the deployment came to, and what is left to do.
std::string sequel(const std::string& shown, const std::string& code_version,
                   const std::optional<Json>& before, const Json& after) {
  const auto known = find_version(before, code_version);
  const auto now = find_version(after, code_version);
  const std::size_t workers = workers_of(after, code_version);
  const std::string version = "code version '" + printable(code_version) + "'";
  if (workers > 0) {
    const bool is_changed =
        !known || !now || known->text("/settings_version") != now->text("/settings_version");
    const std::string whose = std::to_string(workers) + (workers == 1 ? " worker" : " workers");
    return is_changed ? "The settings of " + version + " changed: its " + whose +
                            (workers == 1 ? " is reloaded" : " are reloaded one after another") +
                            "; see windlass apps show " + shown + '\n'
                      : version + " was deployed already with these settings; its " + whose +
                            (workers == 1 ? " stays" : " stay") + " as before\n";
  }
  std::string serving;
  for (const Json& each : after.list("/versions")) {
    const std::string code = each.text("/code_version");
    if (workers_of(after, code) > 0) serving += (serving.empty() ? "'" : ", '") + printable(code) + "'";
  }
  std::string text;
  if (!serving.empty()) {
    text = (known ? version + " has no workers" : "This is a new version, " + version + ", without workers") +
           "; the workers are of " + serving +
           " and stay as they are. To change the settings of those, deploy " + "with their --code-version\n";
  }
  return text + "next: windlass assign " + shown + '\n';
}

}  // namespace

int deploy_app(Admin& admin, const DeployOptions& options) {
  std::map<std::string, std::string> settings;
  if (!read_settings(options, settings) || is_twice(options, settings)) return kExitUsage;
  const auto zip = zip_of(options);
  if (zip == nullptr) return kExitUsage;
  std::string digest;
  auto identity = judge(options, *zip, digest);
  if (!identity) return kExitRefused;
  for (const std::string& each : identity->warnings) {
    std::fprintf(stderr, "warning: %s\n", printable(each).c_str());
  }

  Name name{"", options.app.text.empty() ? application_name(options.path) : options.app.text};
  if (name.id.find('/') != std::string::npos) {
    const auto parsed = parse_name(name.id);
    if (!parsed) return kExitUsage;
    name = *parsed;
  }
  int exit_code = kExitOk;
  if (name.tenant.empty() && !options.dry_run) {
    const auto tenant = tenant_for(admin, options.app, exit_code);
    if (!tenant) return exit_code;
    name.tenant = *tenant;
  }
  std::optional<Json> before;
  std::optional<Json> after;
  if (!options.dry_run) {
    before = find_deployed(admin, name);
    if (!before && admin.exit_code() != kExitOk) return admin.exit_code();
    if (before) take_known_version(options, digest, *before, *identity);
    if (!upload(admin, zip->path(), digest)) return admin.exit_code();
    const auto deployed = admin.ask({.method = "PUT",
                                     .target = "/v1/apps/" + name.path(),
                                     .body = deploy_body(*identity, digest, settings, options.unset)});
    if (!deployed) return admin.exit_code();
    after = find_deployed(admin, name);
    if (!after && admin.exit_code() != kExitOk) return admin.exit_code();
  }
  if (admin.wants_json()) {
    print("{\"tenant\":" + json_text(name.tenant) + ",\"application_id\":" + json_text(name.id) +
          ",\"code_version\":" + json_text(identity->code_version) +
          ",\"metadata_version\":" + json_text(identity->metadata_version) +
          ",\"language\":" + json_text(identity->language) + ",\"digest\":" + json_text(digest) + "}\n");
    return kExitOk;
  }
  const auto version = find_version(after, identity->code_version);
  const std::size_t in_force = version ? version->list("/settings").size() : settings.size();
  Table table{{"APP", "CODE", "METADATA", "LANGUAGE", "SETTINGS", "PACKAGE"}};
  table.add({name.tenant.empty() ? name.id : name.tenant + '/' + name.id, identity->code_version,
             identity->metadata_version, identity->language, std::to_string(in_force), digest.substr(0, 12)});
  print(table.text());
  const std::string shown = printable(name.tenant.empty() ? name.id : name.tenant + '/' + name.id);
  if (after) print(sequel(shown, identity->code_version, before, *after));
  if (identity->functions.empty()) {
    print("Its functions are known once a worker has loaded them; windlass apps show " + shown +
          " then warns of outputs that go nowhere.\n");
  }
  return kExitOk;
}

}  // namespace windlass::cli
