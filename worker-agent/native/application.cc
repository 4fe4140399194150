#include "worker-agent/native/application.h"

#include <dlfcn.h>

#include <simdjson.h>
#include <algorithm>
#include <fstream>

#include "worker-agent/native/exception_text.h"
#include "worker-agent/native/limits.h"
#include "worker-agent/native/metadata.h"

namespace windlass::native {
namespace {

using std::filesystem::path;

Error bad_application(std::string reason) {
  return {ErrorCode::PkgInvalid, Blame::Peer, std::move(reason)};
}

std::string lower(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

// Inside the folder: no absolute name and no way up.
bool stays_inside(const path& name) {
  return !name.empty() && name.is_relative() && std::find(name.begin(), name.end(), path("..")) == name.end();
}

Result<std::vector<path>> listed_libraries(const path& folder) {
  const path manifest = folder / "windlass.json";
  std::vector<path> libraries;
  std::error_code error;
  const auto bytes = std::filesystem::file_size(manifest, error);
  if (error) return libraries;
  if (bytes > kManifestBytesMax) return bad_application(manifest.string() + " is larger than 1 MiB");
  std::ifstream file(manifest, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(text).get(object) != simdjson::SUCCESS) {
    return bad_application(manifest.string() + " is not a JSON object");
  }
  simdjson::dom::element listed;
  if (object["libraries"].get(listed) != simdjson::SUCCESS) return libraries;
  simdjson::dom::array names;
  if (listed.get(names) != simdjson::SUCCESS) {
    return bad_application(manifest.string() + ": \"libraries\" is no list of file names");
  }
  for (const simdjson::dom::element element : names) {
    std::string_view name;
    if (element.get(name) != simdjson::SUCCESS || !stays_inside(path(name))) {
      return bad_application(manifest.string() +
                             ": \"libraries\" may only name files inside the application's folder");
    }
    libraries.push_back(folder / name);
  }
  if (libraries.empty()) return bad_application(manifest.string() + ": \"libraries\" is empty");
  return libraries;
}

Result<std::vector<path>> libraries_of(const path& folder) {
  auto libraries = listed_libraries(folder);
  if (!libraries || !libraries->empty()) return libraries;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".so") libraries->push_back(entry->path());
  }
  if (error)
    return bad_application("the application's folder " + folder.string() +
                           " cannot be read: " + error.message());
  if (libraries->empty()) {
    return bad_application(
        "the application in " + folder.string() +
        " has no shared object; put its *.so beside host.json, or list them in windlass.json");
  }
  std::sort(libraries->begin(), libraries->end());
  return libraries;
}

std::string abi_text(const Abi& abi) {
  return "version " + std::to_string(abi.version) + ", string " + std::to_string(abi.string_bytes) +
         ", function " + std::to_string(abi.function_bytes) + ", value " + std::to_string(abi.value_bytes);
}

}  // namespace

LoadedFunction::LoadedFunction(Function registered, std::string file)
    : function(std::move(registered)),
      library(std::move(file)),
      log_category(function.name + ".Invocation"),  // as the official workers name it
      http(is_http(function)) {
  for (const Binding& binding : function.bindings) {
    if (binding.type.ends_with("Trigger")) trigger = binding.name;
  }
}

// Takes what one shared object registers; the first fault is kept and the rest is not looked at.
class Application::Collector final : public Registry {
 public:
  Collector(Application& application, std::string library)
      : application_(application), library_(std::move(library)) {}

  void add(Function function) override {
    if (fault_) return;
    fault_ = fault_of(function);
    if (fault_) return;
    if (const LoadedFunction* other = application_.find(function.name)) {
      fault_ = "function '" + function.name + "' is registered twice, by " + other->library + " and by " +
               library_ + "; rename one of them";
      return;
    }
    if (application_.functions_.size() == kFunctionsMax) {
      fault_ = "more than " + std::to_string(kFunctionsMax) + " functions are registered";
      return;
    }
    application_.functions_.push_back(std::make_unique<LoadedFunction>(std::move(function), library_));
    LoadedFunction* added = application_.functions_.back().get();
    application_.by_name_.emplace(lower(added->function.name), added);
  }

  const std::optional<std::string>& fault() const { return fault_; }

 private:
  Application& application_;
  std::string library_;
  std::optional<std::string> fault_;
};

Result<std::unique_ptr<Application>> Application::load(const path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return bad_application("the application's folder '" + folder.string() +
                           "' does not exist or is no folder");
  }
  std::unique_ptr<Application> application(new Application());
  application->folder_ = std::filesystem::absolute(folder, error);
  const auto libraries = libraries_of(application->folder_);
  if (!libraries) return libraries.error();
  bool has_entry = false;
  for (const path& library : *libraries) {
    const auto opened = application->open(library);
    if (!opened) return opened.error();
    has_entry |= *opened;
  }
  if (!has_entry) {
    return bad_application(
        "no shared object in " + application->folder_.string() +
        " has WINDLASS_FUNCTION_APP; include <windlass/function.h> and register functions with it");
  }
  if (application->functions_.empty()) {
    return bad_application(
        "the application in " + application->folder_.string() +
        " registers no function; call app.queue(...), app.http(...) in WINDLASS_FUNCTION_APP");
  }
  return application;
}

// Whether it is a part of the application; a library that others need has no entry point and is none.
Result<bool> Application::open(const path& library) {
  const std::string name = library.filename().string();
  // Never closed: threads may run in it, and what it handed out points into it.
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return bad_application(name + " does not load: " + (reason != nullptr ? reason : "no reason given"));
  }
  const auto abi = reinterpret_cast<void (*)(Abi*)>(dlsym(handle, "windlass_abi"));
  const auto entry = reinterpret_cast<void (*)(Registry*)>(dlsym(handle, "windlass_register"));
  if (abi == nullptr || entry == nullptr) return false;
  Abi built_with;
  abi(&built_with);
  if (built_with != Abi()) {
    return bad_application(name + " was built against another windlass/function.h or standard library (" +
                           abi_text(built_with) + "; this worker has " + abi_text(Abi()) +
                           "); build it again");
  }
  Collector collector(*this, name);
  try {
    entry(&collector);
  } catch (...) {
    const ExceptionText thrown = current_exception_text();
    return bad_application("the registration of " + name + " threw " + thrown.type + ": " + thrown.message);
  }
  if (collector.fault()) return bad_application(name + ": " + *collector.fault());
  return true;
}

LoadedFunction* Application::find(std::string_view name) const {
  const auto found = by_name_.find(lower(name));
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace windlass::native
