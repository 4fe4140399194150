// Applications' packages on this machine: what is being fetched, and what was unpacked, by digest. Hashing
// and unpacking take their time, so they are done on a thread of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"
#include "worker-agent/adapters/files.h"
#include "worker-agent/adapters/package_unpack.h"

namespace windlass::agent {

struct PackageStoreOptions {
  std::string folder;
  std::size_t packages_kept = 8;  // unpacked; the ones used longest ago go first
  UnpackBounds bounds = {};
  // Who may read a package that is open to the worker, besides the agent: a group, if the worker has another
  // user. What is closed is closed to the agent's own user too if `closes_to_self`, whom the worker may be.
  std::optional<std::uint32_t> group = std::nullopt;
  bool closes_to_self = false;
};

class PackageStore final {
 public:
  static Result<std::unique_ptr<PackageStore>> open(PackageStoreOptions options);
  ~PackageStore();  // waits for an unpacking under way
  PackageStore(const PackageStore&) = delete;
  PackageStore& operator=(const PackageStore&) = delete;

  // Whether one was unpacked.
  bool has(const std::string& digest) const;
  // Opens it to the worker if it still is what was unpacked; one that was changed is removed. `done` is
  // called on the store's thread with the folder, or with why there is none.
  using Completed = std::function<void(Result<std::string> folder)>;
  void verify(const std::string& digest, Completed done);
  // The worker is a new process: what the one before could read is closed to it. The folder may be empty.
  void close_all_but(const std::string& folder);
  // Again, if it was closed since it was verified.
  Result<Done> open_to_worker(const std::string& folder) const;

  // begin, append..., then complete; a begin gives up what was begun before.
  Result<Done> begin(const std::string& digest);
  Result<Done> append(BytesView part);
  // `done` is called on the store's thread with the folder, which is open to the worker, or with why the
  // package is refused.
  void complete(Completed done);

 private:
  explicit PackageStore(PackageStoreOptions options) : options_(std::move(options)) {}
  std::string path_of(const std::string& digest) const { return options_.folder + "/" + digest; }
  std::string tree_path_of(const std::string& digest) const { return path_of(digest) + ".tree"; }
  Result<std::string> install(const std::string& digest);
  Result<std::string> check(const std::string& digest);
  Result<Done> seal(const std::string& digest);
  void close_to_worker(const std::string& path) const;
  void remove(const std::string& digest);
  void prune(const std::string& but);

  PackageStoreOptions options_;
  std::string digest_;  // of what is being fetched
  FileDescriptor file_;
  std::jthread thread_;
};

}  // namespace windlass::agent
