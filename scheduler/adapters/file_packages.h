// Packages as files of a folder beside the state store: <digest> when whole, <digest>.part before that. A
// file becomes whole by a rename after its bytes are on the disk and were read back and hashed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "scheduler/seams/package_store.h"

namespace windlass {

class FilePackages final : public PackageStore {
 public:
  // Makes the folder; unfinished uploads of an earlier process stay, to be gone on with.
  static Result<std::unique_ptr<FilePackages>> open(std::filesystem::path folder,
                                                    const PackageBounds& bounds = {});

  Result<PackageProgress> put(const PackagePiece& piece) override;
  PackageProgress look(const std::string& digest) override;
  Result<PackagePart> read(const std::string& digest, std::uint64_t offset, std::size_t bytes_max) override;
  void remove(const std::string& digest) override;
  std::vector<std::string> whole() override;

 private:
  FilePackages(std::filesystem::path folder, const PackageBounds& bounds)
      : folder_(std::move(folder)), bounds_(bounds) {}
  std::filesystem::path whole_file(const std::string& digest) const { return folder_ / digest; }
  std::filesystem::path part_file(const std::string& digest) const { return folder_ / (digest + ".part"); }
  Result<Done> make_room(const PackagePiece& piece);
  Result<Done> write(const PackagePiece& piece) const;
  Result<PackageProgress> finish(const PackagePiece& piece);

  std::filesystem::path folder_;
  PackageBounds bounds_;
};

}  // namespace windlass
