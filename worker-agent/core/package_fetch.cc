#include "worker-agent/core/package_fetch.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "protocol/base/clip.h"
#include "protocol/codec/json_writer.h"

namespace windlass::agent {
namespace {

Error bad_part(std::string reason) {
  return {ErrorCode::PkgInvalid, Blame::Peer, std::move(reason)};
}

}  // namespace

PackageFetch::PackageFetch(std::string digest, std::uint64_t bytes)
    : digest_(std::move(digest)), bytes_(bytes) {}

std::optional<Message> PackageFetch::poll_request(std::string_view id) const {
  if (!asked_.empty() || is_complete() || !failure_.empty()) return std::nullopt;
  std::string payload;
  codec::JsonWriter json{payload};
  json.begin();
  json.text("digest", digest_);
  json.integer("offset", offset_);
  json.end();
  json.finish();
  return Message{{.type = kPackageGet, .id = id, .payload = payload}};
}

void PackageFetch::handle_requested(std::string_view id, Instant now) {
  asked_ = id;
  due_ = now + kPartPatience;
  ++attempts_;
}

void PackageFetch::handle_session_ended() {
  asked_.clear();
  earlier_.clear();
}

void PackageFetch::handle_timeout(Instant now) {
  if (asked_.empty() || now < due_) return;
  earlier_.push_back(std::exchange(asked_, {}));
  if (attempts_ >= kPartAttemptsMax) {
    failure_ = "the scheduler does not send the package " + digest_ + "; its log may say why";
  }
}

std::optional<PackageProgress> PackageFetch::poll_progress(Instant now) {
  if (!said_at_) said_at_ = now;
  if (bytes_ < kProgressBytesMin || offset_ == said_bytes_) return std::nullopt;
  if (offset_ - said_bytes_ < bytes_ / 10 && now - *said_at_ < kProgressInterval && !is_complete()) {
    return std::nullopt;
  }
  said_bytes_ = offset_;
  said_at_ = now;
  return PackageProgress{offset_, bytes_};
}

std::optional<Instant> PackageFetch::poll_timeout() const {
  return asked_.empty() ? std::nullopt : std::optional{due_};
}

Result<std::optional<std::string_view>> PackageFetch::handle_part(const Message& part) {
  // On a slow line the answer to an earlier request may be the only one that ever comes.
  const bool is_awaited = !asked_.empty() && (part.corr() == asked_ ||
                                              std::ranges::find(earlier_, part.corr()) != earlier_.end());
  if (!is_awaited) return std::optional<std::string_view>{};
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const std::string_view payload = part.payload();
  if (parser.parse(payload.data(), payload.size()).get(object) != simdjson::SUCCESS) {
    return bad_part("a part of the package is no JSON object");
  }
  std::string_view said;
  if (object["error"].get(said) == simdjson::SUCCESS) {
    return bad_part("the scheduler cannot give the package: " + std::string{clip(said, 512)});
  }
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::string_view digest;
  const auto attachment = part.attachment();
  if (object["digest"].get(digest) != simdjson::SUCCESS ||
      object["offset"].get(offset) != simdjson::SUCCESS || object["total"].get(total) != simdjson::SUCCESS ||
      !attachment) {
    return bad_part("a part of the package lacks its digest, offset, total or bytes");
  }
  if (digest != digest_ || offset != offset_) return std::optional<std::string_view>{};
  if (total != bytes_ || attachment->bytes.empty() || attachment->bytes.size() > bytes_ - offset_) {
    return bad_part("a part of the package does not fit the size of " + std::to_string(bytes_) + " bytes");
  }
  asked_.clear();
  earlier_.clear();
  attempts_ = 0;
  offset_ += attachment->bytes.size();
  return std::optional{attachment->bytes};
}

}  // namespace windlass::agent
