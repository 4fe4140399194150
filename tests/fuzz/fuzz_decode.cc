// Decoding anyone's bytes. Every verdict must be the schema validator's; what is accepted must encode to a
// message that decodes to the same frame; and no message, good or bad, may change how the next one is read:
// a decoder that has read all messages before must see the same frame as one that has read none.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/check.h"
#include "protocol/base/error_code.h"
#include "protocol/base/random.h"
#include "protocol/codec/decode.h"
#include "protocol/codec/encode.h"
#include "tests/support/frame_equality.h"
#include "tests/support/frame_mutator.h"
#include "tests/support/schema_oracle.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

namespace windlass {
namespace {

// The oracle's regular expressions recurse once per character.
constexpr std::size_t kMessageBytesMax = 8192;

// The first byte of an input says how the rest is to be read.
struct Input {
  explicit Input(std::string_view bytes)
      : kind((first(bytes) & 1U) != 0 ? MessageKind::Binary : MessageKind::Text),
        expect(std::array{Expect::RevisionTwo, Expect::RevisionOne, Expect::Any}[first(bytes) / 2 % 3]),
        message(bytes.substr(std::min<std::size_t>(1, bytes.size()))) {}
  static unsigned first(std::string_view bytes) {
    return bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front());
  }
  MessageKind kind;
  Expect expect;
  std::string message;  // a copy of its own, so that reads beyond its end are seen
};

bool fits_four_digit_year(WallTime ts) {
  using namespace std::chrono;
  return ts >= sys_days{year{0} / 1 / 1} && ts < sys_days{year{10000} / 1 / 1};
}

// Of a handshake in another revision only the number is read, of an unknown control frame only the type.
bool is_read_whole(const Frame& frame) {
  const auto* handshake = std::get_if<Handshake>(&frame.body);
  const bool is_spoken = handshake == nullptr || handshake->protocol == 1 || handshake->protocol == 2;
  return is_spoken && !std::holds_alternative<UnknownControl>(frame.body);
}

void check_encodes_to_itself(const Frame& frame, Revision revision) {
  static Decoder decoder;
  if (!is_read_whole(frame) || !fits_four_digit_year(frame.ts)) return;
  std::string message;
  const MessageKind kind = encode(frame, revision, message);
  const Frame* again =
      decoder.decode(message, kind, revision == Revision::One ? Expect::RevisionOne : Expect::RevisionTwo);
  CHECK(again != nullptr);
  const std::string where = support::difference(frame, *again);
  if (!where.empty())
    std::fprintf(stderr, "differs after encoding: %s\n%s\n", where.c_str(), message.c_str());
  CHECK(where.empty());
}

void check_reads_as_a_fresh_one_does(const Input& input, const Frame* frame, const Violation& violation) {
  Decoder fresh;
  const Frame* expected = fresh.decode(input.message, input.kind, input.expect);
  CHECK((frame != nullptr) == (expected != nullptr));
  if (frame == nullptr) {
    CHECK(violation == fresh.violation());
    return;
  }
  CHECK(frame->revision == expected->revision);
  const std::string where = support::difference(*expected, *frame);
  if (!where.empty()) std::fprintf(stderr, "differs from what a fresh decoder reads: %s\n", where.c_str());
  CHECK(where.empty());
}

void run(const Input& input) {
  static Decoder decoder;
  static support::SchemaOracle oracle;
  if (input.message.size() > kMessageBytesMax) return;
  const Frame* frame = decoder.decode(input.message, input.kind, input.expect);
  const Violation& violation = decoder.violation();
  const std::optional<ErrorCode> refusal =
      frame != nullptr ? std::nullopt : std::optional<ErrorCode>{violation.code};
  const std::optional<ErrorCode> expected = oracle.refusal(input.message, input.kind, input.expect);
  const auto name = [](std::optional<ErrorCode> code) {
    return std::string{code ? to_string(*code) : std::string_view{"yes"}};
  };
  if (refusal != expected) {
    std::fprintf(stderr, "decode says %s, the oracle %s: %s %s\n", name(refusal).c_str(),
                 name(expected).c_str(), violation.pointer.c_str(), violation.reason.c_str());
  }
  CHECK(refusal == expected);
  CHECK(frame != nullptr || !violation.reason.empty());
  check_reads_as_a_fresh_one_does(input, frame, violation);
  if (frame != nullptr) check_encodes_to_itself(*frame, frame->revision);
}

}  // namespace
}  // namespace windlass

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  windlass::run(windlass::Input{{reinterpret_cast<const char*>(data), size}});
  return 0;
}

// Half of the time the frame is edited as JSON, to reach the rules behind the grammar.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
  using namespace windlass;
  Random random{seed};
  if (size < 2 || random.one_in(2)) return LLVMFuzzerMutate(data, size, size_max);
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const bool binary = Input{bytes}.kind == MessageKind::Binary;
  const std::size_t head = binary ? 5 : 1;
  const std::size_t end = binary ? bytes.rfind('}') + 1 : size;
  if (size <= head || end <= head || end > size) return LLVMFuzzerMutate(data, size, size_max);
  const std::string text = support::mutated_frame(bytes.substr(head, end - head), random);
  if (text.empty()) return LLVMFuzzerMutate(data, size, size_max);
  std::string edited{bytes.substr(0, 1)};
  if (binary) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) edited += static_cast<char>(text.size() >> shift);
  }
  edited.append(text).append(bytes.substr(end));
  const std::size_t length = std::min(edited.size(), size_max);
  std::copy_n(edited.begin(), length, reinterpret_cast<char*>(data));
  return length;
}
