#include "tests/support/frame_mutator.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace windlass::support {
namespace {

using Json = rapidjson::Value;

template <std::size_t N, class T>
const T& one_of(const std::array<T, N>& values, Random& random) {
  return values[random.below(N)];
}

// Names of both revisions, so that an added member is often one that belongs elsewhere.
constexpr std::array<std::string_view, 40> kNames = {"type",
                                                     "id",
                                                     "ts",
                                                     "tenant",
                                                     "sender",
                                                     "payload",
                                                     "corr",
                                                     "seq",
                                                     "session_seq",
                                                     "ack",
                                                     "flags",
                                                     "ext",
                                                     "attachment",
                                                     "for",
                                                     "request",
                                                     "role",
                                                     "bytes",
                                                     "protocol",
                                                     "token",
                                                     "fingerprint",
                                                     "worker_instance_id",
                                                     "features",
                                                     "packages",
                                                     "manifest",
                                                     "status",
                                                     "resumed",
                                                     "last_seen_seq",
                                                     "recv_window",
                                                     "recv_window_bytes",
                                                     "ack_seq",
                                                     "ack_bitmap",
                                                     "dup",
                                                     "phase",
                                                     "retry_after_ms",
                                                     "inflight",
                                                     "cpu_pct",
                                                     "drift",
                                                     "",
                                                     "a/b~c",
                                                     "é"};

constexpr std::array<std::size_t, 16> kLengths = {0,   1,   35,  63,  64,   65,   127,  128,
                                                  129, 255, 256, 257, 1024, 1025, 4096, 4097};

constexpr std::array<std::string_view, 11> kCharacters = {
    "a", "f", "0", " ", "~", "é", "☃", "😀", "\n", "\x7f", std::string_view{"\0", 1}};

constexpr std::array<std::string_view, 30> kTexts = {"",
                                                     "control.ack",
                                                     "control.handshake",
                                                     "control.resume",
                                                     "control.session.accept",
                                                     "control.unknown.thing",
                                                     "control.envelope",
                                                     "control.ack.revision1",
                                                     "biz.x",
                                                     "ext.a.b-c_d",
                                                     "biz.",
                                                     "bizx.y",
                                                     "scheduler",
                                                     "worker",
                                                     "runtime",
                                                     "token",
                                                     "mtls",
                                                     "start",
                                                     "complete",
                                                     "installed",
                                                     "E.TIMEOUT",
                                                     "E.A.B",
                                                     "E.a",
                                                     "ff",
                                                     "0f",
                                                     "2024-02-29T23:59:60Z",
                                                     "2023-02-29T00:00:00.1+23:59",
                                                     "2024-02-30T00:00:00Z",
                                                     "2024-01-01T24:00:00Z",
                                                     "2024-01-01T00:00:00.1234567890Z"};

constexpr std::array<std::int64_t, 20> kIntegers = {
    -1,  0,    1,    2,    3,    63,         64,         65,          99,          100,
    101, 1023, 1024, 4096, 4097, 4294967295, 4294967296, 31536000000, 31536000001, 9007199254740991};

constexpr std::array<std::uint64_t, 6> kLargeIntegers = {9007199254740992U,     9223372036854775807U,
                                                         9223372036854775808U,  18446744073709551614U,
                                                         18446744073709551615U, 17U};

constexpr std::array<double, 10> kNumbers = {0.0,     -0.0,  1.0, 2.0, 0.5, 100.0, 100.00000000000001,
                                             -1e-300, 1e300, 64.0};

// What a writer of JSON would not write, and where parsers differ: the edges of a double's range, and
// integers in other forms.
constexpr std::array<std::string_view, 32> kSpellings = {"1E2",
                                                         "1e2",
                                                         "1.0",
                                                         "2.0",
                                                         "0.0",
                                                         "-0",
                                                         "-0.0",
                                                         "0e0",
                                                         "0e309",
                                                         "0e400",
                                                         "0.0e400",
                                                         "-0e9999999999",
                                                         "1e-400",
                                                         "1e-9999999999",
                                                         "4.9e-324",
                                                         "2.4703282292062328e-324",
                                                         "1e308",
                                                         "10e307",
                                                         "10e308",
                                                         "-10e308",
                                                         "0.1e309",
                                                         "0.01e311",
                                                         "1e309",
                                                         "1.7976931348623157e308",
                                                         "1.7976931348623158e308",
                                                         "1.7976931348623159e308",
                                                         "9007199254740993",
                                                         "9007199254740993.0",
                                                         "18446744073709551616",
                                                         "-9223372036854775809",
                                                         "01",
                                                         "1.e5"};

class Mutator {
 public:
  Mutator(std::string_view text, Random& random) : random_(random) {
    document_.Parse(text.data(), text.size());
  }

  std::string run() {
    if (document_.HasParseError()) return {};
    for (std::uint64_t edits = random_.one_in(2) ? 1 + random_.below(3) : 1; edits > 0; --edits) edit();
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
    document_.Accept(writer);
    std::string text{buffer.GetString(), buffer.GetSize()};
    if (random_.one_in(8)) spell_number(text);
    if (random_.one_in(16)) edit_bytes(text);
    return text;
  }

 private:
  void collect(Json& node, std::vector<Json*>& nodes, std::vector<Json*>& objects) {
    nodes.push_back(&node);
    if (node.IsArray()) {
      for (Json& item : node.GetArray()) collect(item, nodes, objects);
    } else if (node.IsObject()) {
      objects.push_back(&node);
      std::for_each(node.MemberBegin(), node.MemberEnd(),
                    [&](auto& member) { collect(member.value, nodes, objects); });
    }
  }

  void edit() {
    std::vector<Json*> nodes;
    std::vector<Json*> objects;
    collect(document_, nodes, objects);
    Json& node = *nodes[random_.below(nodes.size())];
    if (objects.empty()) return replace(node);
    Json& object = *objects[random_.below(objects.size())];
    switch (random_.below(8)) {
      case 0:
        return remove_member(object);
      case 1:
        return add_member(object);
      case 2:
        return rename_member(object);
      case 3:
        return replace(node);
      case 4:
        return nest(node);
      default:
        return cross_bound(node);
    }
  }

  Json::MemberIterator any_member(Json& object) {
    return object.MemberBegin() + static_cast<std::ptrdiff_t>(random_.below(object.MemberCount()));
  }
  void remove_member(Json& object) {
    if (object.MemberCount() > 0) object.EraseMember(any_member(object));
  }
  void add_member(Json& object) {
    if (object.MemberCount() > 0 && random_.one_in(3)) {
      const auto member = any_member(object);
      Json name{member->name, document_.GetAllocator()};
      Json value{member->value, document_.GetAllocator()};
      object.AddMember(name, value, document_.GetAllocator());
      return;
    }
    Json name = text(one_of(kNames, random_));
    Json value = any_value();
    object.AddMember(name, value, document_.GetAllocator());
  }
  void rename_member(Json& object) {
    if (object.MemberCount() > 0) any_member(object)->name = text(one_of(kNames, random_));
  }
  void replace(Json& node) { node = any_value(); }
  void nest(Json& node) {
    const std::uint64_t levels = random_.one_in(3) ? 26 + random_.below(8) : 1;
    for (std::uint64_t i = 0; i < levels; ++i) {
      Json outer{rapidjson::kArrayType};
      outer.PushBack(Json{}.Swap(node), document_.GetAllocator());
      node = outer;
    }
  }

  // Keeps the type, and goes to an edge of it.
  void cross_bound(Json& node) {
    if (node.IsString()) {
      edit_string(node);
    } else if (node.IsNumber()) {
      node = any_number();
    } else if (node.IsBool()) {
      node.SetBool(!node.GetBool());
    } else if (node.IsArray()) {
      resize(node);
    } else if (node.IsObject() && random_.one_in(4)) {
      fill(node);
    } else {
      replace(node);
    }
  }
  void edit_string(Json& node) {
    std::string value{node.GetString(), node.GetStringLength()};
    switch (random_.below(4)) {
      case 0: {
        const std::string_view unit = one_of(kCharacters, random_);
        value.clear();
        for (std::size_t i = one_of(kLengths, random_); i > 0; --i) value += unit;
        break;
      }
      case 1:
        value = one_of(kTexts, random_);
        break;
      case 2:
        if (!value.empty()) value.erase(random_.below(value.size()), 1);
        break;
      default:
        value.insert(random_.below(value.size() + 1), one_of(kCharacters, random_));
        break;
    }
    node = text(value);
  }
  void resize(Json& node) {
    const std::array<rapidjson::SizeType, 6> sizes = {0, 1, 16, 17, 256, 257};
    const rapidjson::SizeType size = one_of(sizes, random_);
    while (node.Size() > size) node.PopBack();
    while (node.Size() < size) {
      Json item = node.Empty() ? text("x") : Json{node[0], document_.GetAllocator()};
      node.PushBack(item, document_.GetAllocator());
    }
  }
  void fill(Json& node) {
    const rapidjson::SizeType size = random_.one_in(2) ? 256 : 257;
    for (int i = 0; node.MemberCount() < size; ++i) {
      Json name = text(std::to_string(i));
      node.AddMember(name, Json{i}, document_.GetAllocator());
    }
  }

  Json text(std::string_view value) {
    return {value.data(), static_cast<rapidjson::SizeType>(value.size()), document_.GetAllocator()};
  }
  Json any_number() {
    switch (random_.below(4)) {
      case 0:
        return Json{one_of(kNumbers, random_)};
      case 1:
        return Json{one_of(kLargeIntegers, random_)};
      default:
        return Json{one_of(kIntegers, random_)};
    }
  }
  Json any_value() {
    switch (random_.below(7)) {
      case 0:
        return Json{};
      case 1:
        return Json{random_.one_in(2)};
      case 2:
        return any_number();
      case 3:
        return Json{rapidjson::kObjectType};
      case 4:
        return Json{rapidjson::kArrayType};
      default:
        return text(one_of(kTexts, random_));
    }
  }
  // Of the numbers as they stand in the text, one in another spelling.
  void spell_number(std::string& text) {
    constexpr std::string_view kNumber = "+-.0123456789Ee";
    std::vector<std::pair<std::size_t, std::size_t>> numbers;
    bool is_in_string = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '"') is_in_string = !is_in_string;
      if (is_in_string && text[at] == '\\') ++at;
      if (is_in_string || (text[at] != '-' && (text[at] < '0' || text[at] > '9'))) continue;
      const std::size_t end = std::min(text.find_first_not_of(kNumber, at), text.size());
      numbers.emplace_back(at, end - at);
      at = end - 1;
    }
    if (numbers.empty()) return;
    const auto [at, size] = numbers[random_.below(numbers.size())];
    text.replace(at, size, one_of(kSpellings, random_));
  }
  void edit_bytes(std::string& text) {
    const std::size_t at = random_.below(text.size());
    switch (random_.below(3)) {
      case 0:
        text.erase(at, 1);
        break;
      case 1:
        text[at] = static_cast<char>(random_.below(256));
        break;
      default:
        text.resize(at);
        break;
    }
  }

  Random& random_;
  rapidjson::Document document_;
};

}  // namespace

std::string mutated_frame(std::string_view text, Random& random) {
  return Mutator{text, random}.run();
}

}  // namespace windlass::support
