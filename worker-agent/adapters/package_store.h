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
};

class PackageStore final {
 public:
  static Result<std::unique_ptr<PackageStore>> open(PackageStoreOptions options);
  ~PackageStore();  // waits for an unpacking under way
  PackageStore(const PackageStore&) = delete;
  PackageStore& operator=(const PackageStore&) = delete;

  // Where the unpacked one is, if it is.
  std::optional<std::string> find(const std::string& digest) const;

  // begin, append..., then complete; a begin gives up what was begun before.
  Result<Done> begin(const std::string& digest);
  Result<Done> append(BytesView part);
  // `done` is called on the store's thread with the folder, or with why the package is refused.
  using Completed = std::function<void(Result<std::string> folder)>;
  void complete(Completed done);

 private:
  explicit PackageStore(PackageStoreOptions options) : options_(std::move(options)) {}
  std::string path_of(const std::string& digest) const { return options_.folder + "/" + digest; }
  Result<std::string> install(const std::string& digest);
  void prune(const std::string& but);

  PackageStoreOptions options_;
  std::string digest_;  // of what is being fetched
  FileDescriptor file_;
  std::jthread thread_;
};

}  // namespace windlass::agent
