#include "scheduler/cli/package_identity.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/cli/json_value.h"

namespace windlass::cli {
namespace {

constexpr std::size_t kVersionDigits = 12;
constexpr std::size_t kWarningsMax = 20;
// Names that worker.config.json files use, and our own.
constexpr std::array<std::string_view, 8> kLanguages = {"node",       "native",          "python", "java",
                                                        "powershell", "dotnet-isolated", "go",     "custom"};

Error not_an_app(std::string reason) {
  return {ErrorCode::PkgInvalid, Blame::Local, std::move(reason)};
}

std::string language_names() {
  std::string names;
  for (const std::string_view each : kLanguages) names += (names.empty() ? "" : ", ") + std::string{each};
  return names;
}

Result<std::string> language_of(const ZipContents& contents, const std::string& given) {
  std::string language = given;
  const auto own = contents.texts.find("windlass.json");
  if (own != contents.texts.end()) {
    const auto json = Json::parse(own->second);
    if (!json || !json->is_object()) return not_an_app("windlass.json is not a JSON object");
    if (language.empty()) language = json->text("/language");
  }
  if (language.empty() && contents.texts.contains("package.json")) language = "node";
  if (language.empty()) {
    return not_an_app(
        "the language is not known: there is no package.json (node) and no windlass.json that says "
        "{\"language\":\"...\"}; give --language");
  }
  if (std::ranges::find(kLanguages, language) == kLanguages.end()) {
    return not_an_app("language '" + language + "' is not known; known are " + language_names());
  }
  return language;
}

// Outputs other than an HTTP answer: nothing here takes them yet.
void warn_of_outputs(const std::string& function, const Json& json, std::vector<std::string>& warnings) {
  for (const Json& binding : json.list("/bindings")) {
    const std::string direction = binding.text("/direction");
    const std::string type = binding.text("/type");
    if ((direction != "out" && direction != "inout") || type == "http" || warnings.size() >= kWarningsMax) {
      continue;
    }
    warnings.push_back("function '" + function + "' has the output '" + binding.text("/name") + "' (" + type +
                       "), which goes nowhere: output bindings do not exist yet");
  }
}

void warn_of_dependencies(const ZipContents& contents, std::vector<std::string>& warnings) {
  const auto package = contents.texts.find("package.json");
  if (package == contents.texts.end() || contents.has_node_modules) return;
  const auto json = Json::parse(package->second);
  if (!json || json->names("/dependencies").empty()) return;
  warnings.emplace_back(
      "package.json names dependencies and the package has no node_modules: unless they are bundled, run npm "
      "ci or npm install in its folder and deploy it again");
}

}  // namespace

Result<PackageIdentity> identify_package(const ZipContents& contents, const std::string& digest,
                                         const std::string& language) {
  const auto host = contents.texts.find("host.json");
  if (host == contents.texts.end()) {
    return not_an_app("there is no host.json at the top of the package, so this is no function application");
  }
  const auto json = Json::parse(host->second);
  if (!json || !json->is_object()) return not_an_app("host.json is not a JSON object");
  PackageIdentity identity;
  auto found = language_of(contents, language);
  if (!found) return found.error();
  identity.language = std::move(*found);
  if (identity.language == "node") warn_of_dependencies(contents, identity.warnings);
  std::vector<BytesView> parts;
  for (const auto& [path, text] : contents.texts) {
    const bool is_function = path.ends_with("/function.json");
    const auto described = is_function ? Json::parse(text) : std::nullopt;
    if (is_function && !described) return not_an_app("'" + path + "' is not JSON");
    if (described) warn_of_outputs(path.substr(0, path.find('/')), *described, identity.warnings);
    if (!is_function && path != "host.json") continue;
    parts.emplace_back(path);
    parts.emplace_back(text);
    if (is_function) identity.functions.push_back(path.substr(0, path.find('/')));
  }
  identity.code_version = digest.substr(0, kVersionDigits);
  // Where no function.json says what the functions are, any file may register one.
  identity.metadata_version = identity.functions.empty()
                                  ? identity.code_version
                                  : hex_encode(view_of(sha256_parts(parts))).substr(0, kVersionDigits);
  return identity;
}

std::string application_name(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path whole = std::filesystem::weakly_canonical(path, ignored);
  if (whole.filename().empty()) whole = whole.parent_path();
  std::string name;
  for (const char c : whole.extension() == ".zip" ? whole.stem().string() : whole.filename().string()) {
    const bool is_fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_fine) {
      name += c;
    } else if (!name.empty()) {
      name += c == '_' || c == '.' ? c : '-';
    }
  }
  return name.substr(0, 63);
}

}  // namespace windlass::cli
