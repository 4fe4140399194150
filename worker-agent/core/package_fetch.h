// Fetches one package over the scheduler's session, part by part: asks, waits, asks for what follows. Parts
// may be lost with a session and may be wrong; neither ends in a package that is not the one that was asked
// for, since its digest is compared at the end (by whoever writes the parts to the disk).
//
//   biz.package.get   {"digest", "offset"}
//   biz.package.part  {"digest", "offset", "total"} and the bytes as attachment, or {"digest", "code",
//   "error"}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/time.h"
#include "protocol/messages/message.h"

namespace windlass::agent {

inline constexpr std::string_view kPackageGet = "biz.package.get";
inline constexpr std::string_view kPackagePart = "biz.package.part";
inline constexpr std::uint64_t kPackageBytesMax = std::uint64_t{1} << 30U;
inline constexpr Duration kPartPatience = seconds{15};  // then it is asked for again
inline constexpr std::uint32_t kPartAttemptsMax = 4;
// Of one that takes its time it is said how far it got: every tenth, and every few seconds where that is
// slow.
inline constexpr std::uint64_t kProgressBytesMin = 8 * 1024 * 1024;
inline constexpr Duration kProgressInterval = seconds{5};

struct PackageProgress {
  std::uint64_t bytes = 0;  // that came
  std::uint64_t total = 0;
};

class PackageFetch final {
 public:
  PackageFetch(std::string digest, std::uint64_t bytes);

  // The message to send, with this id, if one is due.
  [[nodiscard]] std::optional<Message> poll_request(std::string_view id) const;
  void handle_requested(std::string_view id, Instant now);  // it was taken by a session
  void handle_session_ended();                              // asked again on the next
  void handle_timeout(Instant now);
  [[nodiscard]] std::optional<Instant> poll_timeout() const;

  // The bytes that continue what came so far; nothing if this part is not for us. An error ends the fetch.
  Result<std::optional<std::string_view>> handle_part(const Message& part);

  // How far it got, when that is worth saying again.
  [[nodiscard]] std::optional<PackageProgress> poll_progress(Instant now);

  bool is_complete() const { return offset_ == bytes_; }
  // Why no more is asked; empty: more is.
  const std::string& failure() const { return failure_; }
  const std::string& digest() const { return digest_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::string digest_;
  std::uint64_t bytes_;
  std::uint64_t offset_ = 0;
  std::string asked_;                 // the id of the request under way
  std::vector<std::string> earlier_;  // ids of earlier, timed-out requests for the same part
  Instant due_{};
  std::uint32_t attempts_ = 0;  // for the part at offset_
  std::string failure_;
  std::uint64_t said_bytes_ = 0;
  std::optional<Instant> said_at_;
};

}  // namespace windlass::agent
