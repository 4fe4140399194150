#include "protocol/session/journal_record.h"

#include <array>
#include <cstdint>
#include <span>

#include "protocol/base/big_endian.h"
#include "protocol/base/check.h"
#include "protocol/crypto/digest.h"

namespace windlass {
namespace {

constexpr std::string_view kMagic = "WJ";
constexpr std::size_t kHeadBytes = 8;  // up to the check
constexpr std::size_t kCheckBytes = 8;

Digest digest_of(BytesView head, BytesView body) {
  const std::array<BytesView, 2> parts = {head, body};
  return sha256_parts(parts);
}

Bytes escape(BytesView content) {
  Bytes body;
  body.reserve(content.size() + 8);
  for (auto at = content.find(kMagic); at != BytesView::npos; at = content.find(kMagic)) {
    body.append(content.substr(0, at + kMagic.size())).push_back('\0');
    content.remove_prefix(at + kMagic.size());
  }
  return body.append(content);
}

}  // namespace

Bytes encode_journal_record(JournalRecordKind kind, BytesView content) {
  const Bytes body = escape(content);
  CHECK(body.size() <= UINT32_MAX);
  Bytes record{kMagic};
  record.push_back(kJournalRecordVersion);
  record.push_back(static_cast<char>(kind));
  append_big_endian(record, body.size(), 4);
  const Digest digest = digest_of(record, body);
  return record.append(view_of(digest).substr(0, kCheckBytes)).append(body);
}

std::optional<JournalRecord> read_journal_record(BytesView log, std::size_t offset) {
  const BytesView bytes = log.substr(offset);
  if (bytes.size() < kHeadBytes + kCheckBytes || !bytes.starts_with(kMagic)) return std::nullopt;
  const BytesView head = bytes.substr(0, kHeadBytes);
  const std::uint64_t body_bytes = big_endian(head.substr(4, 4));
  if (body_bytes > bytes.size() - kHeadBytes - kCheckBytes) return std::nullopt;
  const BytesView body = bytes.substr(kHeadBytes + kCheckBytes, body_bytes);
  const Digest digest = digest_of(head, body);
  if (view_of(digest).substr(0, kCheckBytes) != bytes.substr(kHeadBytes, kCheckBytes)) return std::nullopt;
  return JournalRecord{head[2], head[3], body, kHeadBytes + kCheckBytes + body.size()};
}

bool has_journal_record(BytesView log, std::size_t offset) {
  for (auto at = log.find(kMagic, offset); at != BytesView::npos; at = log.find(kMagic, at + 1)) {
    const bool is_escaped = at + kMagic.size() < log.size() && log[at + kMagic.size()] == '\0';
    if (!is_escaped && read_journal_record(log, at)) return true;
  }
  return false;
}

bool has_escapes(BytesView body) {
  return body.find(kMagic) != BytesView::npos;
}

Bytes unescape_journal_body(BytesView body) {
  Bytes content;
  content.reserve(body.size());
  for (auto at = body.find(kMagic); at != BytesView::npos; at = body.find(kMagic)) {
    content.append(body.substr(0, at + kMagic.size()));
    body.remove_prefix(at + kMagic.size());
    if (body.starts_with('\0')) body.remove_prefix(1);
  }
  return content.append(body);
}

}  // namespace windlass
