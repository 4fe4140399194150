#include "runtime/adapters/http_asked.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/crypto/percent_encoding.h"

namespace windlass::runtime {
namespace {

constexpr std::string_view kKeyHeader = "x-functions-key";
constexpr std::size_t kPathSegmentsMax = 256;

std::string decoded_query(std::string_view text) {
  std::string plain{text};
  std::ranges::replace(plain, '+', ' ');
  return percent_decode(plain).value_or(plain);
}

// A slash that is escaped stays so: it divides nothing, and whoever decodes once more must not take it for
// one that does.
std::optional<std::string> decoded_segment(std::string_view raw) {
  std::string plain;
  while (true) {
    std::size_t slash = raw.find("%2");
    while (slash < raw.size() && raw.substr(slash + 2, 1) != "F" && raw.substr(slash + 2, 1) != "f") {
      slash = raw.find("%2", slash + 1);
    }
    const auto piece = percent_decode(raw.substr(0, slash));
    if (!piece) return std::nullopt;
    plain += *piece;
    if (slash == std::string_view::npos) return plain;
    plain += raw.substr(slash, 3);
    raw.remove_prefix(slash + 3);
  }
}

// Pairs in the order of their first appearance, found again by name.
class JoinedPairs final {
 public:
  void add(std::string name, std::string_view value, std::string_view between) {
    const auto [known, is_new] = places_.try_emplace(name, pairs_.size());
    if (is_new) {
      pairs_.emplace_back(std::move(name), value);
    } else {
      pairs_[known->second].second.append(between).append(value);
    }
  }
  TextPairs take() { return std::move(pairs_); }

 private:
  TextPairs pairs_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

std::string in_lower_case(std::string_view text) {
  std::string all{text};
  std::ranges::transform(all, all.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return all;
}

std::string_view header_of(const TextPairs& headers, std::string_view name) {
  const auto found = std::ranges::find_if(headers, [&](const auto& each) {
    return each.first.size() == name.size() && in_lower_case(each.first) == name;
  });
  return found == headers.end() ? std::string_view{} : std::string_view{found->second};
}

TextPairs joined_headers(const TextPairs& headers) {
  TextPairs pairs = joined_headers_as_sent(headers);
  for (auto& [name, value] : pairs) name = in_lower_case(name);
  return pairs;
}

TextPairs joined_headers_as_sent(const TextPairs& headers) {
  TextPairs pairs;
  std::unordered_map<std::string, std::size_t> places;
  for (const auto& [name, value] : headers) {
    const std::string lower = in_lower_case(name);
    if (lower == kKeyHeader) continue;
    const auto [known, is_new] = places.try_emplace(lower, pairs.size());
    if (is_new) {
      pairs.emplace_back(name, value);
    } else {
      pairs[known->second].second.append(lower == "cookie" ? "; " : ", ").append(value);
    }
  }
  return pairs;
}

std::string_view forwarded_scheme(const TextPairs& headers) {
  const std::string_view value = header_of(headers, "x-forwarded-proto");
  if (in_lower_case(value) == "https") return "https";
  return in_lower_case(value) == "http" ? "http" : "";
}

std::optional<HttpPath> read_path(std::string_view path) {
  struct Part {
    std::string_view raw;
    std::string plain;
  };
  std::vector<Part> parts;
  bool is_folder = false;  // ends with a slash
  if (path.starts_with('/')) path.remove_prefix(1);
  while (!path.empty()) {
    const std::string_view raw = path.substr(0, std::min(path.find('/'), path.size()));
    path.remove_prefix(std::min(raw.size() + 1, path.size()));
    is_folder = raw.data() + raw.size() < path.data();
    std::optional<std::string> plain = decoded_segment(raw);
    if (!plain || parts.size() >= kPathSegmentsMax) return std::nullopt;
    const bool is_dots = *plain == "." || *plain == "..";
    is_folder = is_folder || is_dots;
    if (*plain == ".." && !parts.empty()) parts.pop_back();
    if (!is_dots) parts.push_back({raw, *std::move(plain)});
  }
  HttpPath read;
  for (Part& each : parts) {
    read.text.append("/").append(each.raw);
    read.segments.push_back(std::move(each.plain));
  }
  if (is_folder || parts.empty()) read.text += '/';
  return read;
}

std::optional<HttpQuery> read_query(std::string_view text, const IsKey& is_key) {
  HttpQuery query;
  JoinedPairs pairs;
  std::size_t count = 0;
  for (bool is_first = true; !text.empty();) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equal = std::min(pair.find('='), pair.size());
    if (!pair.empty()) {
      if (++count > limits::kHttpQueryPairsMax) return std::nullopt;
      std::string name = decoded_query(pair.substr(0, equal));
      const std::string value = decoded_query(pair.substr(std::min(equal + 1, pair.size())));
      if (in_lower_case(name) == "code" && is_key(value)) {
        query.shows_key = query.shows_key || name == "code";
        continue;
      }
      pairs.add(std::move(name), value, ",");
    }
    if (!std::exchange(is_first, false)) query.text += '&';
    query.text += pair;
  }
  query.pairs = pairs.take();
  return query;
}

}  // namespace windlass::runtime
