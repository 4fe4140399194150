// Tells when files change on the disk: what they hold, or which file a name leads to. Folders are watched,
// not files, so that a rename over the old file and a swapped symbolic link are seen; a slow look at every
// file besides, because not every file system tells (network mounts) and watches can run out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/readiness.h"
#include "protocol/base/limits.h"

namespace windlass {

struct FileWatchOptions {
  Duration settle = limits::kFileSettle;         // writers are left in peace for so long after a change
  Duration settle_max = limits::kFileSettleMax;  // but no longer than this after the first
  Duration look = limits::kFileLook;             // between two looks without being told
};

class FileWatch final : private ReadinessEvents {
 public:
  // Called on the loop with the numbers of the files that are not what they were.
  using Handler = std::function<void(const std::vector<std::size_t>& changed)>;

  // Changes count from now on, also those before the loop runs. A file may be missing, and may come later.
  FileWatch(EventLoop& loop, std::vector<std::string> paths, Handler on_change,
            FileWatchOptions options = {});
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  // What a path led to. Contents are not read: whoever uses them does that.
  struct Seen {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;  // 0: nothing is there
    std::int64_t bytes = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;  // permissions too: what could not be read may be readable now
    bool operator==(const Seen&) const = default;
  };
  static Seen look_at(const std::string& path);

  void on_readable() override;
  void on_writable() override {}
  bool concerns_us(int watch, const std::string& name) const;
  void note_change();
  void arm();  // watches where the paths lead now
  void check();

  EventLoop& loop_;
  std::vector<std::string> paths_;
  Handler on_change_;
  FileWatchOptions options_;
  std::vector<Seen> seen_;
  std::map<int, std::set<std::string>> names_;  // of each watched folder, those that matter
  std::optional<Instant> changed_since_;
  LoopAlarm alarm_;
  std::unique_ptr<Readiness> inotify_;  // none: only the slow look
};

}  // namespace windlass
