// Packages that end with the process, beside a store that does too. The reference of the contract suite.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>

#include "scheduler/seams/package_store.h"

namespace windlass {

class MemoryPackages final : public PackageStore {
 public:
  explicit MemoryPackages(const PackageBounds& bounds = {}) : bounds_(bounds) {}

  Result<PackageProgress> put(const PackagePiece& piece) override;
  PackageProgress look(const std::string& digest) override;
  Result<PackagePart> read(const std::string& digest, std::uint64_t offset, std::size_t bytes_max) override;
  void remove(const std::string& digest) override;
  std::vector<std::string> whole() override;

 private:
  struct Unfinished {
    std::string digest;
    Bytes bytes;
    std::uint64_t total = 0;
  };
  std::list<Unfinished>::iterator find_unfinished(const std::string& digest);
  std::uint64_t all_bytes() const;

  PackageBounds bounds_;
  std::map<std::string, Bytes> whole_;
  std::list<Unfinished> unfinished_;  // the oldest first
};

}  // namespace windlass
