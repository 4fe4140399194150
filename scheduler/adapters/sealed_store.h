// A store whose values are encrypted in the store beneath it: whatever a row holds, settings of applications
// above all, nobody who has only the file can read it. Keys of rows stay legible.
#pragma once

#include <memory>

#include "protocol/crypto/seal.h"
#include "scheduler/seams/state_store.h"

namespace windlass {

class SealedStore final : public StateStore {
 public:
  // Encrypts what lies there in clear text or under an older key, and then has the store beneath forget the
  // earlier bytes. E.STORE.INVALID: a row cannot be read, or lies in clear text though all were encrypted.
  struct Opened {
    std::unique_ptr<SealedStore> store;
    std::size_t sealed_anew = 0;  // rows
  };
  static Result<Opened> open(std::unique_ptr<StateStore> beneath, Sealer sealer);

  // Whether any row of it is encrypted.
  static bool is_sealed(const Snapshot& beneath);

  Result<Snapshot> load() override;
  Result<Version> commit(const WriteBatch& batch, Version expected) override;
  Result<Done> scrub() override { return beneath_->scrub(); }

 private:
  SealedStore(std::unique_ptr<StateStore> beneath, Sealer sealer)
      : beneath_(std::move(beneath)), sealer_(std::move(sealer)) {}
  Result<std::size_t> seal_all();
  Result<Done> scrub_once();  // unless that was done since the newest key came

  std::unique_ptr<StateStore> beneath_;
  Sealer sealer_;
  bool is_marked_ = false;  // the row that says that all others are encrypted is there
};

}  // namespace windlass
