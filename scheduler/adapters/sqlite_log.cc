#include "scheduler/adapters/sqlite_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "protocol/base/bytes.h"

namespace windlass {
namespace {

// SQLite's file format, section 4: all numbers are big-endian.
constexpr std::size_t kLogHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kLogMagic = 0x377f0682;  // the lowest bit says how checksums read their words
constexpr std::uint32_t kLogFormat = 3007000;

std::uint32_t word_at(BytesView bytes, std::size_t at, bool is_big_endian = true) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[at + (is_big_endian ? i : 3 - i)]);
    value = value << 8U | byte;
  }
  return value;
}

struct Checksum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;

  void add(BytesView bytes, bool is_big_endian) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first += word_at(bytes, at, is_big_endian) + second;
      second += word_at(bytes, at + 4, is_big_endian) + first;
    }
  }
};

Checksum checksum_at(BytesView bytes, std::size_t at) {
  return {word_at(bytes, at), word_at(bytes, at + 4)};
}

class Log final {
 public:
  // Nothing: the header is wrong.
  static std::optional<Log> read(BytesView bytes) {
    const std::uint32_t magic = word_at(bytes, 0);
    const std::uint32_t page = word_at(bytes, 8);
    if ((magic & ~1U) != kLogMagic || word_at(bytes, 4) != kLogFormat) return std::nullopt;
    if (page < 512 || page > 65536 || (page & (page - 1)) != 0) return std::nullopt;
    Log log{bytes, page, (magic & 1U) != 0};
    log.running_.add(bytes.substr(0, 24), log.is_big_endian_);
    if (log.running_ != checksum_at(bytes, 24)) return std::nullopt;
    return log;
  }

  std::size_t frames() const { return (bytes_.size() - kLogHeaderBytes) / frame_bytes_; }

  // Frames from the front that are whole and follow one another.
  std::size_t count_valid() {
    std::size_t count = 0;
    for (; count < frames() && is_of_this_log(count); ++count) {
      const BytesView bytes = frame(count);
      running_.add(bytes.substr(0, 8), is_big_endian_);
      running_.add(bytes.substr(kFrameHeaderBytes), is_big_endian_);
      if (running_ != checksum_at(bytes, 16)) break;
    }
    return count;
  }

  // Whether a whole commit and then something more stand at or behind `from`: the next commit is not begun
  // before the last one is synced, so no power cut left that.
  bool has_more_than_one_commit(std::size_t from) const {
    bool is_one_over = false;
    for (std::size_t i = from; i < frames(); ++i) {
      if (!is_of_this_log(i)) continue;
      if (is_one_over) return true;
      is_one_over = word_at(frame(i), 4) != 0;
    }
    return false;
  }

 private:
  Log(BytesView bytes, std::size_t page, bool is_big_endian)
      : bytes_(bytes), frame_bytes_(kFrameHeaderBytes + page), is_big_endian_(is_big_endian) {}

  BytesView frame(std::size_t i) const {
    return bytes_.substr(kLogHeaderBytes + i * frame_bytes_, frame_bytes_);
  }
  // Behind its end lie frames of the log that this one overwrites, with other salts.
  bool is_of_this_log(std::size_t i) const { return frame(i).substr(8, 8) == bytes_.substr(16, 8); }

  BytesView bytes_;
  std::size_t frame_bytes_;
  bool is_big_endian_;
  Checksum running_;
};

Error damaged_log(const std::string& path, const std::string& how) {
  return {ErrorCode::StoreInvalid, Blame::Local,
          "the store's log " + path + " is damaged (" + how +
              "); it was left as it is: restore it and its store from a copy"};
}

}  // namespace

Result<Done> look_at_log(const std::string& path, StoreSync sync) {
  const std::string log_path = path + "-wal";
  std::ifstream in{log_path, std::ios::binary};
  if (!in) {
    if (!std::filesystem::exists(log_path)) return Done{};
    return Error{ErrorCode::StoreFailed, Blame::Local,
                 "the store's log " + log_path + " cannot be read: " + std::strerror(errno)};
  }
  const Bytes bytes{std::istreambuf_iterator<char>(in), {}};
  // Too short for a frame, or room that a power cut left unwritten: nothing was ever committed to it.
  if (bytes.size() <= kLogHeaderBytes || std::ranges::all_of(bytes, [](char c) { return c == 0; })) {
    return Done{};
  }
  auto log = Log::read(bytes);
  if (!log) return damaged_log(log_path, "its header");
  const std::size_t valid = log->count_valid();
  if (sync == StoreSync::Full && log->has_more_than_one_commit(valid)) {
    return damaged_log(log_path,
                       "frame " + std::to_string(valid + 1) + " of " + std::to_string(log->frames()));
  }
  return Done{};
}

}  // namespace windlass
