// What both package stores say, in one set of words.
#pragma once

#include <string>

#include "scheduler/seams/package_store.h"

namespace windlass {

inline Error wrong_place(const PackagePiece& piece, std::uint64_t next) {
  return {ErrorCode::ResultDuplicate, Blame::Peer,
          "a piece of package '" + piece.digest + "' came for offset " + std::to_string(piece.offset) +
              ", but the next one belongs at " + std::to_string(next) + "; go on there, or begin anew at 0"};
}

inline Error wrong_digest(const std::string& digest) {
  return {ErrorCode::PkgInvalid, Blame::Peer,
          "what was uploaded as package '" + digest + "' has another SHA-256; upload it again"};
}

inline Error no_package(const std::string& digest) {
  return {ErrorCode::CmdUnknown, Blame::Peer, "there is no package '" + digest + "'"};
}

inline Error beyond_end(const std::string& digest, std::uint64_t total) {
  return {ErrorCode::ProtoSchema, Blame::Peer,
          "package '" + digest + "' ends at " + std::to_string(total) + " bytes"};
}

inline Error no_package_room(const PackageBounds& bounds) {
  return {ErrorCode::StoreFull, Blame::Local,
          "all packages together may have " + std::to_string(bounds.all_bytes_max) +
              " bytes (setting packages.all_bytes_max); undeploy what is not needed"};
}

}  // namespace windlass
