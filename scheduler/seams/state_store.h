// The one durable thing a scheduler has. Small on purpose: everything is read once at the start, and every
// change is one compare-and-put of many rows.
#pragma once

#include "protocol/base/result.h"
#include "scheduler/core/rows.h"

namespace windlass {

// Used by one thread at a time. May block: it is never called from a session's loop.
class StateStore {
 public:
  virtual ~StateStore() = default;

  // All rows, sorted by key, and the version they have.
  virtual Result<Snapshot> load() = 0;

  // Makes the whole batch durable if the store is at `expected`, and answers its new version; an empty batch
  // changes nothing and answers `expected`. On an error no write of the batch can be seen, and the same call
  // may be tried again:
  //   E.STORE.STALE   the store is at another version: somebody else writes; this scheduler must stop
  //   E.STORE.FULL    no room
  //   E.STORE.FAILED  anything else the system said
  virtual Result<Version> commit(const WriteBatch& batch, Version expected) = 0;

  // Nothing of rows that were overwritten or erased is left where somebody could find it.
  virtual Result<Done> scrub() { return Done{}; }
};

}  // namespace windlass
