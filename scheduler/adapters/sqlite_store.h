// The embedded store: one SQLite file in WAL mode, held by one process at a time. A file that is damaged, or
// is not ours, is refused with a sentence and left as it is, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "scheduler/seams/state_store.h"

namespace windlass {

// How much a commit survives. Either survives a crash of the process.
enum class StoreSync : std::uint8_t {
  Full,    // a power cut too: each commit waits for the disk
  Normal,  // a power cut may take back the last commits, never a part of one
};

struct SqliteOptions {
  std::string path;
  StoreSync sync = StoreSync::Full;
  std::optional<std::uint32_t> pages_max{};  // of 4 KiB; a bound for the file, and how tests fill the disk
};

class SqliteStore final : public StateStore {
 public:
  // Creates the file if there is none. Blame::Local errors, each one sentence with the path:
  //   E.STORE.INVALID  not a store of ours, of a newer version, or damaged
  //   E.STORE.FAILED   cannot be opened or created, or another process holds it
  static Result<std::unique_ptr<SqliteStore>> open(const SqliteOptions& options);
  ~SqliteStore() override;
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  Result<Snapshot> load() override;
  Result<Version> commit(const WriteBatch& batch, Version expected) override;
  Result<Done> scrub() override;

 private:
  struct Connection;
  explicit SqliteStore(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

}  // namespace windlass
