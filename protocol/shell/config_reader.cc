#include "protocol/shell/config_reader.h"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "protocol/adapters/private_file.h"
#include "protocol/shell/config_values.h"

namespace windlass {
namespace config_detail {

struct Value {
  std::string place;                 // "agent.toml:12" or "WINDLASS_SESSION_TENANT" or "--tenant"
  std::string text;                  // of a flag or an environment variable
  const toml::node* node = nullptr;  // of the file
};

struct Inside {
  ConfigSources sources;
  toml::table root;
  std::set<const void*> known_nodes;          // asked for
  std::set<std::string> known_sections = {};  // that take environment variables
  std::set<std::string> known_names = {};     // environment variables asked for
  std::vector<std::string> problems = {};
  bool file_is_read = true;

  std::string place(const toml::node& node) const {
    return sources.file.value_or("") + ":" + std::to_string(node.source().begin.line);
  }
};

}  // namespace config_detail

namespace {

using config_detail::Inside;
using config_detail::Value;

const toml::table* table_of(const void* node) {
  return static_cast<const toml::table*>(node);
}

std::string variable_name(std::string_view section, std::string_view key) {
  std::string name = "WINDLASS_" + std::string{section} + "_" + std::string{key};
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c == '.' ? '_' : c;
  });
  return name;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    items.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

// The text of a value from anywhere, if it is text there.
std::optional<std::string> text_of(const Value& value) {
  return value.node == nullptr ? std::optional{value.text} : value.node->value_exact<std::string>();
}

// Sentences come from everywhere, some with their full stop.
std::string with_full_stop(std::string sentence) {
  if (!sentence.ends_with('.')) sentence += '.';
  return sentence;
}

template <class T>
std::string outside(Range<T> range) {
  std::ostringstream sentence;
  sentence << "must be from " << range.least << " to " << range.most;
  return sentence.str();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> windlass_environment() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::size_t equals = text.find('=');
    if (!text.starts_with("WINDLASS_") || equals == std::string_view::npos) continue;
    // The operator's tool is told its scheduler this way, by variables that any program may inherit.
    if (text.starts_with("WINDLASS_ADMIN_URL=") || text.starts_with("WINDLASS_ADMIN_CA=")) continue;
    found.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

ConfigTable::ConfigTable(Inside& inside, std::string name, const void* node, bool takes_environment)
    : inside_(&inside), name_(std::move(name)), node_(node), takes_environment_(takes_environment) {}

bool ConfigTable::has(std::string_view key) const {
  return ConfigTable{*this}.find(key).has_value();
}

std::optional<Value> ConfigTable::find(std::string_view key) {
  const toml::node* node = node_ == nullptr ? nullptr : table_of(node_)->get(key);
  if (node != nullptr) inside_->known_nodes.insert(node);
  if (takes_environment_) {
    const std::string full = name_ + "." + std::string{key};
    const std::string variable = variable_name(name_, key);
    inside_->known_names.insert(variable);
    const auto& flags = inside_->sources.flags;
    const auto flag = std::ranges::find(flags, full, &FlagValue::key);
    if (flag != flags.end()) return Value{.place = flag->flag, .text = flag->value};
    const auto& environment = inside_->sources.environment;
    const auto named = std::ranges::find(environment, variable, [](const auto& pair) { return pair.first; });
    if (named != environment.end()) return Value{.place = variable, .text = named->second};
  }
  if (node == nullptr) return std::nullopt;
  return Value{.place = inside_->place(*node), .text = {}, .node = node};
}

void ConfigTable::wrong(const Value& value, std::string_view key, std::string_view sentence) {
  inside_->problems.push_back(
      with_full_stop(value.place + ": " + name_ + "." + std::string{key} + " " + std::string{sentence}));
}

void ConfigTable::problem(std::string_view key, std::string_view sentence) {
  if (const auto value = key.empty() ? std::nullopt : find(key)) return wrong(*value, key, sentence);
  const std::string place = node_ != nullptr ? inside_->place(*table_of(node_)) + ": " : "";
  inside_->problems.push_back(with_full_stop(place + name_ + (key.empty() ? "" : ".") + std::string{key} +
                                             " " + std::string{sentence}));
}

std::optional<std::string> ConfigTable::optional_text(std::string_view key) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  auto text = text_of(*value);
  if (!text) wrong(*value, key, "must be text in quotes");
  return text;
}

std::string ConfigTable::text(std::string_view key, std::string_view fallback) {
  return optional_text(key).value_or(std::string{fallback});
}

std::string ConfigTable::required_text(std::string_view key, std::string_view what_it_is) {
  const auto value = find(key);
  if (!value) {
    const std::string variable = takes_environment_ ? " or " + variable_name(name_, key) : "";
    problem(key, "is missing: it is " + std::string{what_it_is} + "; set it in the file" + variable);
    return {};
  }
  const auto text = optional_text(key);
  if (text && text->empty()) wrong(*value, key, "is empty: it is " + std::string{what_it_is});
  return text.value_or("");
}

std::string ConfigTable::secret(std::string_view key) {
  std::string found = text(key, "");
  const auto value = find(key);
  if (found.empty() || value->node == nullptr) return found;
  if (const auto is_private = check_private(*inside_->sources.file); !is_private)
    wrong(*value, key, "is wrong: " + is_private.error().reason);
  return found;
}

std::string ConfigTable::choice(std::string_view key, std::string_view fallback,
                                std::span<const std::string_view> choices) {
  std::string chosen = text(key, fallback);
  if (std::ranges::find(choices, std::string_view{chosen}) != choices.end()) return chosen;
  std::string names;
  for (const std::string_view each : choices) names += (names.empty() ? "" : ", ") + std::string{each};
  problem(key, "must be one of " + names + ", not \"" + chosen + "\"");
  return std::string{fallback};
}

std::optional<std::uint64_t> ConfigTable::optional_integer(std::string_view key, Range<std::uint64_t> range) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  std::optional<std::uint64_t> parsed;
  if (value->node == nullptr) {
    parsed = parse_integer(value->text);
  } else if (const auto whole = value->node->value_exact<std::int64_t>(); whole && *whole >= 0) {
    parsed = static_cast<std::uint64_t>(*whole);
  }
  if (parsed && *parsed >= range.least && *parsed <= range.most) return *parsed;
  wrong(*value, key, parsed ? outside(range) : "must be a whole number");
  return std::nullopt;
}

std::uint64_t ConfigTable::integer(std::string_view key, std::uint64_t fallback, Range<std::uint64_t> range) {
  return optional_integer(key, range).value_or(fallback);
}

std::optional<double> ConfigTable::optional_number(std::string_view key, Range<double> range) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  const auto parsed = value->node == nullptr ? parse_number(value->text) : value->node->value<double>();
  if (parsed && *parsed >= range.least && *parsed <= range.most) return *parsed;
  wrong(*value, key, parsed ? outside(range) : "must be a number");
  return std::nullopt;
}

double ConfigTable::number(std::string_view key, double fallback, Range<double> range) {
  return optional_number(key, range).value_or(fallback);
}

bool ConfigTable::boolean(std::string_view key, bool fallback) {
  const auto value = find(key);
  if (!value) return fallback;
  const auto parsed = value->node == nullptr ? parse_boolean(value->text) : value->node->value_exact<bool>();
  if (!parsed) wrong(*value, key, "must be true or false");
  return parsed.value_or(fallback);
}

Duration ConfigTable::duration(std::string_view key, Duration fallback, Range<Duration> range) {
  const auto value = find(key);
  if (!value) return fallback;
  const auto text = text_of(*value);
  const auto parsed = text ? parse_duration(*text) : std::nullopt;
  if (parsed && *parsed >= range.least && *parsed <= range.most) return *parsed;
  wrong(*value, key,
        parsed ? "must be from " + duration_text(range.least) + " to " + duration_text(range.most)
               : R"(must be text with a unit, such as "250ms", "30s", "5m" or "1h")");
  return fallback;
}

std::uint64_t ConfigTable::bytes(std::string_view key, std::uint64_t fallback, Range<std::uint64_t> range) {
  const auto value = find(key);
  if (!value) return fallback;
  std::optional<std::uint64_t> parsed;
  if (const auto text = text_of(*value)) {
    parsed = parse_bytes(*text);
  } else if (const auto whole = value->node->value_exact<std::int64_t>(); whole && *whole >= 0) {
    parsed = static_cast<std::uint64_t>(*whole);
  }
  if (parsed && *parsed >= range.least && *parsed <= range.most) return *parsed;
  wrong(
      *value, key,
      parsed ? outside(range) + " bytes" : R"(must be a number of bytes, or text such as "64KiB" or "8MiB")");
  return fallback;
}

std::vector<std::string> ConfigTable::list(std::string_view key) {
  const auto value = find(key);
  if (!value) return {};
  if (value->node == nullptr) return split(value->text);
  std::vector<std::string> items;
  const toml::array* array = value->node->as_array();
  if (array != nullptr) {
    for (const toml::node& item : *array) {
      if (auto text = item.value_exact<std::string>()) items.push_back(std::move(*text));
    }
  }
  if (array == nullptr || items.size() != array->size())
    wrong(*value, key, "must be a list of texts in quotes");
  return items;
}

std::vector<Range<std::uint64_t>> ConfigTable::ranges(std::string_view key, Range<std::uint64_t> range) {
  const auto value = find(key);
  if (!value) return {};
  std::vector<Range<std::uint64_t>> items;
  bool is_good = true;
  const auto add = [&](std::string_view text) {
    const std::size_t dash = text.find('-');
    const auto first = parse_integer(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_integer(text.substr(dash + 1));
    is_good = is_good && first && last && range.least <= *first && *first <= *last && *last <= range.most;
    if (is_good) items.push_back({*first, *last});
  };
  if (value->node == nullptr) {
    for (const std::string& each : split(value->text)) add(each);
  } else if (const toml::array* array = value->node->as_array()) {
    for (const toml::node& item : *array) {
      const auto whole = item.value_exact<std::int64_t>();
      add(whole ? std::to_string(*whole) : item.value_exact<std::string>().value_or(""));
    }
  } else {
    is_good = false;
  }
  if (is_good) return items;
  std::string sentence = "must be a list of whole numbers from ";
  sentence.append(std::to_string(range.least)).append(" to ").append(std::to_string(range.most));
  wrong(*value, key, sentence + R"(, or of ranges as "32768-60999", the lower number first)");
  return {};
}

ConfigReader::ConfigReader(ConfigSources sources) : inside_(std::make_unique<Inside>()) {
  inside_->sources = std::move(sources);
  if (!inside_->sources.file) return;
  const std::string& path = *inside_->sources.file;
  try {
    inside_->file_is_read = false;
    std::ifstream file{path, std::ios::binary};
    std::ostringstream text;
    if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
    if (!file.is_open() || file.bad()) {
      inside_->problems.push_back(path + ": cannot be read: " + std::strerror(errno) + ".");
      return;
    }
    inside_->root = toml::parse(text.str(), path);
    inside_->file_is_read = true;
  } catch (const toml::parse_error& error) {
    inside_->problems.push_back(path + ":" + std::to_string(error.source().begin.line) +
                                ": is not TOML: " + std::string{error.description()} + ".");
  }
}

ConfigReader::~ConfigReader() = default;

ConfigTable ConfigReader::section(std::string_view name) {
  inside_->known_sections.insert(std::string{name});
  toml::node* node = inside_->root.at_path(name).node();
  if (node != nullptr) inside_->known_nodes.insert(node);
  if (node != nullptr && !node->is_table()) {
    inside_->problems.push_back(inside_->place(*node) + ": " + std::string{name} + " must be a section, [" +
                                std::string{name} + "].");
    node = nullptr;
  }
  return {*inside_, std::string{name}, node == nullptr ? nullptr : node->as_table(), true};
}

std::vector<ConfigTable> ConfigReader::named_tables(std::string_view name) {
  std::vector<ConfigTable> found;
  toml::node* node = inside_->root.at_path(name).node();
  if (node == nullptr || !node->is_table()) return found;
  inside_->known_nodes.insert(node);
  for (const auto& [key, each] : *node->as_table()) {
    if (!each.is_table()) continue;  // finish() tells, unless it was asked for
    inside_->known_nodes.insert(&each);
    found.push_back({*inside_, std::string{name} + "." + std::string{key.str()}, each.as_table(), false});
  }
  return found;
}

std::vector<ConfigTable> ConfigReader::tables(std::string_view name) {
  std::vector<ConfigTable> found;
  toml::node* node = inside_->root.at_path(name).node();
  if (node == nullptr) return found;
  inside_->known_nodes.insert(node);
  if (!node->is_array_of_tables()) {
    inside_->problems.push_back(inside_->place(*node) + ": " + std::string{name} +
                                " must be a list of sections, each [[" + std::string{name} + "]].");
    return found;
  }
  for (toml::node& each : *node->as_array()) {
    inside_->known_nodes.insert(&each);
    found.push_back({*inside_, std::string{name}, each.as_table(), false});
  }
  return found;
}

namespace {

void report_unknown(Inside& inside, const toml::table& table, const std::string& prefix) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string{key.str()};
    if (!inside.known_nodes.contains(&node)) {
      inside.problems.push_back(inside.sources.file.value_or("") + ":" +
                                std::to_string(key.source().begin.line) + ": " + name +
                                " is not a known setting; remove it or correct its name.");
    } else if (const toml::table* inner = node.as_table()) {
      report_unknown(inside, *inner, name + ".");
    } else if (const toml::array* array = node.as_array()) {
      for (const toml::node& each : *array) {
        if (const toml::table* item = each.as_table()) report_unknown(inside, *item, name + ".");
      }
    }
  }
}

}  // namespace

std::vector<std::string> ConfigReader::finish() {
  if (!inside_->file_is_read) return {inside_->problems.front()};  // the rest would follow from this
  report_unknown(*inside_, inside_->root, "");
  // Several of our programs share an environment: only what looks like one of this program's is judged.
  for (const auto& [name, value] : inside_->sources.environment) {
    if (inside_->known_names.contains(name)) continue;
    for (const std::string& section : inside_->known_sections) {
      if (!name.starts_with(variable_name(section, ""))) continue;
      inside_->problems.push_back(name + ": is not a known setting; remove it or correct its name.");
      break;
    }
  }
  return std::move(inside_->problems);
}

SecretFile read_secret_file(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  if (!file.is_open()) return {{}, path + ": cannot be read: " + std::strerror(errno) + "."};
  if (const auto is_private = check_private(path); !is_private) return {{}, is_private.error().reason};
  std::getline(file, line);
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {{}, path + ": is empty; its first line must be the secret."};
  return {line.substr(first, line.find_last_not_of(" \t\r") - first + 1), {}};
}

}  // namespace windlass
