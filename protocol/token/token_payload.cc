#include "protocol/token/token_payload.h"

#include "protocol/base/check.h"
#include "protocol/base/limits.h"

namespace windlass {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

void append_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20) {
      out.append("\\u00").push_back(kHexDigits[byte >> 4U]);
      out.push_back(kHexDigits[byte & 0xfU]);
      continue;
    }
    if (character == '"' || character == '\\') out.push_back('\\');
    out.push_back(character);
  }
  out.push_back('"');
}

void append_time(std::string& out, WallTime time) {
  const auto milliseconds_since_epoch = time.time_since_epoch().count();
  CHECK(milliseconds_since_epoch >= 0);
  CHECK(static_cast<std::uint64_t>(milliseconds_since_epoch) <= limits::kIntegerMax);
  out.append(std::to_string(milliseconds_since_epoch));
}

// Reads the canonical form from front to back. After a failure `failed` stays set and the rest reads as
// empty, so the caller asks once, at the end.
class Reader final {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  Reader& literal(std::string_view expected) {
    if (!rest_.starts_with(expected)) return fail();
    rest_.remove_prefix(expected.size());
    return *this;
  }

  Reader& string(std::string& out) {
    literal("\"");
    while (!rest_.empty()) {
      const char character = rest_.front();
      rest_.remove_prefix(1);
      if (character == '"') return *this;
      if (static_cast<unsigned char>(character) < 0x20) return fail();
      if (character != '\\') {
        out.push_back(character);
      } else if (!escape(out)) {
        return fail();
      }
    }
    return fail();  // the closing quote is missing
  }

  Reader& integer(std::uint64_t& out) {
    std::size_t digits = 0;
    out = 0;
    while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
      out = out * 10 + static_cast<std::uint64_t>(rest_[digits] - '0');
      if (out > limits::kIntegerMax) return fail();
      ++digits;
    }
    if (digits == 0 || (digits > 1 && rest_.front() == '0')) return fail();
    rest_.remove_prefix(digits);
    return *this;
  }

  Reader& time(WallTime& out) {
    std::uint64_t count = 0;
    integer(count);
    out = WallTime{milliseconds{static_cast<milliseconds::rep>(count)}};
    return *this;
  }

  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  Reader& fail() {
    failed_ = true;
    rest_ = {};
    return *this;
  }

  // The backslash is read already.
  bool escape(std::string& out) {
    if (rest_.starts_with('"') || rest_.starts_with('\\')) {
      out.push_back(rest_.front());
      rest_.remove_prefix(1);
      return true;
    }
    if (rest_.size() < 5 || !rest_.starts_with("u00")) return false;
    const auto high = kHexDigits.find(rest_[3]);
    const auto low = kHexDigits.find(rest_[4]);
    if (high > 1 || low == std::string_view::npos) return false;  // only what needs it is escaped
    out.push_back(static_cast<char>(high * 16 + low));
    rest_.remove_prefix(5);
    return true;
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace

std::string encode_token_payload(const TokenClaims& claims) {
  CHECK(claims.gen <= limits::kIntegerMax);
  std::string out = R"({"sid":)";
  append_string(out, claims.sid);
  append_string(out.append(R"(,"wid":)"), claims.wid);
  append_string(out.append(R"(,"tenant":)"), claims.tenant);
  append_time(out.append(R"(,"exp":)"), claims.exp);
  append_time(out.append(R"(,"iat":)"), claims.iat);
  append_string(out.append(R"(,"kid":)"), claims.kid);
  out.append(R"(,"gen":)").append(std::to_string(claims.gen)).push_back('}');
  return out;
}

std::optional<TokenClaims> parse_token_payload(std::string_view text) {
  TokenClaims claims;
  Reader reader{text};
  reader.literal(R"({"sid":)").string(claims.sid);
  reader.literal(R"(,"wid":)").string(claims.wid);
  reader.literal(R"(,"tenant":)").string(claims.tenant);
  reader.literal(R"(,"exp":)").time(claims.exp);
  reader.literal(R"(,"iat":)").time(claims.iat);
  reader.literal(R"(,"kid":)").string(claims.kid);
  reader.literal(R"(,"gen":)").integer(claims.gen).literal("}");
  if (!reader.finished()) return std::nullopt;
  return claims;
}

}  // namespace windlass
