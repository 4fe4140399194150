#include "worker-agent/adapters/worker_config.h"

#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "worker-agent/adapters/files.h"

namespace windlass::agent {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr const char* kVersionVariable = "FUNCTIONS_WORKER_RUNTIME_VERSION";
#if defined(__aarch64__)
constexpr std::string_view kArchitecture = "Arm64";
#else
constexpr std::string_view kArchitecture = "X64";
#endif
constexpr std::string_view kConfigName = "worker.config.json";
constexpr std::size_t kConfigListMax = 64;

// Empty: not set.
std::string variable(const std::string& name) {
  const char* const set = std::getenv(name.c_str());
  return set == nullptr ? "" : set;
}

class ConfigFile {
 public:
  explicit ConfigFile(std::string path) : path_(std::move(path)) {}

  Error wrong(const std::string& sentence) const {
    return {ErrorCode::StoreInvalid, Blame::Local, path_ + ": " + sentence};
  }

  Result<std::string> text(object from, const char* key, bool is_needed) const {
    element found;
    if (from[key].get(found) != SUCCESS || found.is_null()) {
      if (!is_needed) return std::string{};
      return wrong(std::string{"description."} + key + " is missing");
    }
    std::string_view value;
    if (found.get(value) != SUCCESS || (is_needed && value.empty()) ||
        value.find('\0') != std::string_view::npos) {
      return wrong(std::string{"description."} + key + " must be text");
    }
    return std::string{value};
  }

  Result<std::vector<std::string>> texts(object from, const char* key) const {
    std::vector<std::string> all;
    element found;
    if (from[key].get(found) != SUCCESS || found.is_null()) return all;
    simdjson::dom::array list;
    if (found.get(list) != SUCCESS)
      return wrong(std::string{"description."} + key + " must be a list of texts");
    for (const element each : list) {
      std::string_view value;
      if (each.get(value) != SUCCESS || value.find('\0') != std::string_view::npos ||
          all.size() == kConfigListMax) {
        return wrong(std::string{"description."} + key + " must be a list of at most 64 texts");
      }
      all.emplace_back(value);
    }
    return all;
  }

  // A path with its placeholders replaced as Azure's host does it: {os}, {architecture}, and %NAME% of the
  // environment, of which the runtime's version has a default in the file.
  Result<std::string> filled_in(std::string path, const std::string& version) const {
    const auto replace = [&](std::string_view name, std::string_view value) {
      for (std::size_t at = path.find(name); at != std::string::npos;
           at = path.find(name, at + value.size())) {
        path.replace(at, name.size(), value);
      }
    };
    replace("{os}", "LINUX");
    replace("{architecture}", kArchitecture);
    for (std::size_t at = path.find('%'); at != std::string::npos; at = path.find('%', at)) {
      const std::size_t end = path.find('%', at + 1);
      if (end == std::string::npos) break;
      const std::string name = path.substr(at + 1, end - at - 1);
      const std::string value = name == kVersionVariable ? version : variable(name);
      if (value.empty()) {
        return wrong("\"" + path + "\" wants the environment variable " + name + ", which is not set");
      }
      path.replace(at, end + 1 - at, value);
      at += value.size();
    }
    if (path.find_first_of("{}%") == std::string::npos) return path;
    return wrong("\"" + path + "\" has a placeholder that is not known here; write the path itself");
  }

  // "hh:mm:ss", as .NET writes a span of time; fractions of a second are allowed and left out.
  Result<std::optional<Duration>> span(object from, const char* key) const {
    element found;
    if (from[key].get(found) != SUCCESS || found.is_null()) return std::optional<Duration>{};
    std::string_view value;
    if (found.get(value) != SUCCESS)
      return wrong(std::string{"processOptions."} + key + " must be \"hh:mm:ss\"");
    std::int64_t total = 0;
    const char* at = value.data();
    const char* const end = at + value.size();
    for (int part = 0; part < 3; ++part) {
      unsigned number = 0;
      const auto [next, error] = std::from_chars(at, end, number);
      const bool is_last = part == 2;
      const bool is_good = error == std::errc{} && number < (part == 0 ? 24U : 60U) &&
                           (is_last ? next == end || *next == '.' : next != end && *next == ':');
      if (!is_good) return wrong(std::string{"processOptions."} + key + " must be \"hh:mm:ss\"");
      total = total * 60 + number;
      at = is_last ? next : next + 1;
    }
    if (total == 0) return wrong(std::string{"processOptions."} + key + " must be longer than no time");
    return std::optional<Duration>{seconds{total}};
  }

 private:
  std::string path_;
};

// true, or the text of it, which is what workers' files have.
bool is_true(object from, const char* key) {
  element found;
  if (from[key].get(found) != SUCCESS) return false;
  bool value = false;
  if (found.get(value) == SUCCESS) return value;
  std::string_view text;
  return found.get(text) == SUCCESS && (text == "true" || text == "True");
}

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<Error> read_process_options(const ConfigFile& file, object root, WorkerConfig& config) {
  object options;
  if (root["processOptions"].get(options) != SUCCESS) return std::nullopt;
  for (const auto& [key, into] : {std::pair{"processStartupTimeout", &config.start_timeout},
                                  std::pair{"initializationTimeout", &config.init_timeout},
                                  std::pair{"environmentReloadTimeout", &config.reload_timeout}}) {
    const auto read = file.span(options, key);
    if (!read) return read.error();
    *into = *read;
  }
  return std::nullopt;
}

}  // namespace

Result<WorkerConfig> parse_worker_config(std::string_view text, const std::string& folder) {
  const ConfigFile file{folder + "/" + std::string{kConfigName}};
  simdjson::dom::parser parser;
  object root;
  if (parser.parse(text.data(), text.size()).get(root) != SUCCESS) return file.wrong("it is no JSON object");
  object description;
  if (root["description"].get(description) != SUCCESS) return file.wrong("it has no description object");
  WorkerConfig config;
  config.folder = folder;
  auto language = file.text(description, "language", true);
  if (!language) return language.error();
  config.language = *std::move(language);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  if (config.language.size() > 64 || !std::ranges::all_of(config.language, is_plain)) {
    return file.wrong("description.language must be up to 64 small letters, digits, '-', '_' or '.'");
  }
  auto executable = file.text(description, "defaultExecutablePath", true);
  if (!executable) return executable.error();
  config.executable = *std::move(executable);
  auto worker_path = file.text(description, "defaultWorkerPath", false);
  if (!worker_path) return worker_path.error();
  config.worker_path = *std::move(worker_path);
  // A worker that is a program itself.
  if (config.worker_path == config.executable) config.worker_path.clear();
  const auto version = file.text(description, "defaultRuntimeVersion", false);
  if (!version) return version.error();
  config.version = variable(kVersionVariable);
  if (config.version.empty()) config.version = *version;
  for (std::string* each : {&config.executable, &config.worker_path}) {
    auto filled = file.filled_in(*each, config.version);
    if (!filled) return filled.error();
    *each = *std::move(filled);
  }
  auto extensions = file.texts(description, "extensions");
  if (!extensions) return extensions.error();
  config.extensions = *std::move(extensions);
  auto arguments = file.texts(description, "arguments");
  if (!arguments) return arguments.error();
  config.arguments = *std::move(arguments);
  config.has_indexing = is_true(description, "workerIndexing");
  if (auto error = read_process_options(file, root, config)) return *std::move(error);
  return config;
}

Result<WorkerConfig> load_worker_config(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(folder, error).lexically_normal();
  const std::string path = (whole / kConfigName).string();
  if (!std::filesystem::is_regular_file(path, error)) {
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 path + " is not there; language_worker.folder must be a folder with a worker.config.json."};
  }
  auto text = read_all(path);
  if (!text) return text.error();
  auto config = parse_worker_config(*text, whole.string());
  if (!config) return config.error();
  if (config->worker_path.empty()) return config;
  const std::filesystem::path program = whole / config->worker_path;
  if (!std::filesystem::is_regular_file(program, error)) {
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 path + ": description.defaultWorkerPath names " + program.string() + ", which is not there"};
  }
  config->worker_path = program.string();
  return config;
}

Result<std::string> find_executable(const WorkerConfig& config) {
  const std::filesystem::path name{config.executable};
  if (config.executable.find('/') != std::string::npos) {
    const std::filesystem::path path = (config.folder / name).lexically_normal();
    if (is_program(path)) return path.string();
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 path.string() + " cannot be executed; set language_worker.executable to the program."};
  }
  std::vector<std::filesystem::path> places{config.folder};
  std::error_code error;
  if (const auto self = std::filesystem::read_symlink("/proc/self/exe", error); !error) {
    places.push_back(self.parent_path());
  }
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) places.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const auto& place : places) {
    if (is_program(place / name)) return (place / name).string();
  }
  return Error{ErrorCode::StoreInvalid, Blame::Local,
               config.executable + " is neither in " + config.folder +
                   " nor along PATH; install it, or set language_worker.executable to the program."};
}

}  // namespace windlass::agent
