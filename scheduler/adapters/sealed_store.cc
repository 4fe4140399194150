#include "scheduler/adapters/sealed_store.h"

#include <algorithm>
#include <utility>

namespace windlass {
namespace {

// Written when every row is encrypted: from then on none may lie there in clear text. It holds the id of the
// key under which earlier bytes were scrubbed last; "{}" if they were not.
constexpr std::string_view kMarkRow = "meta/sealed";
constexpr std::string_view kUnscrubbed = "{}";
constexpr std::size_t kRowsAtOnce = 100;

Error unreadable_row(const std::string& key, const std::string& reason) {
  return {ErrorCode::StoreInvalid, Blame::Local,
          "row '" + key + "' of the store cannot be decrypted: " + reason +
              "; put the key back into the file of encryption keys, or restore the store from a copy"};
}

}  // namespace

bool SealedStore::is_sealed(const Snapshot& beneath) {
  return std::ranges::any_of(beneath.rows, [](const Row& row) { return Sealer::is_sealed(row.value); });
}

Result<SealedStore::Opened> SealedStore::open(std::unique_ptr<StateStore> beneath, Sealer sealer) {
  std::unique_ptr<SealedStore> store{new SealedStore{std::move(beneath), std::move(sealer)}};
  const auto count = store->seal_all();
  if (!count) return count.error();
  if (auto scrubbed = store->scrub_once(); !scrubbed) return scrubbed.error();
  return Opened{std::move(store), *count};
}

// An earlier start may have ended between sealing and scrubbing, so what counts is the mark and not whether
// this start sealed anything.
Result<Done> SealedStore::scrub_once() {
  auto snapshot = beneath_->load();
  if (!snapshot) return snapshot.error();
  const auto mark = std::ranges::find(snapshot->rows, kMarkRow, &Row::key);
  if (mark != snapshot->rows.end()) {
    const auto scrubbed = sealer_.open(mark->value, kMarkRow);
    if (scrubbed && *scrubbed == sealer_.newest()) return Done{};
  }
  if (auto scrubbed = beneath_->scrub(); !scrubbed) return scrubbed.error();
  if (mark == snapshot->rows.end()) return Done{};  // the first rows bring it along
  auto version = beneath_->commit({{std::string{kMarkRow}, sealer_.seal(sealer_.newest(), kMarkRow)}},
                                  snapshot->version);
  if (!version) return version.error();
  return Done{};
}

Result<std::size_t> SealedStore::seal_all() {
  auto snapshot = beneath_->load();
  if (!snapshot) return snapshot.error();
  const auto mark = std::ranges::find(snapshot->rows, kMarkRow, &Row::key);
  const bool is_marked = mark != snapshot->rows.end();
  is_marked_ = is_marked || !snapshot->rows.empty();  // an empty store gets its mark with its first rows
  WriteBatch batch;
  std::size_t count = 0;
  const auto write = [&]() -> Result<Done> {
    auto version = beneath_->commit(batch, snapshot->version);
    if (!version) return version.error();
    snapshot->version = *version;
    batch.clear();
    return Done{};
  };
  for (const Row& row : snapshot->rows) {
    Bytes clear = row.value;
    if (Sealer::is_sealed(row.value)) {
      auto opened = sealer_.open(row.value, row.key);
      if (!opened) return unreadable_row(row.key, opened.error().reason);
      if (Sealer::kid_of(row.value) == sealer_.newest()) continue;
      clear = *std::move(opened);
    } else if (is_marked) {
      return unreadable_row(row.key, "it lies there in clear text, though this store is encrypted");
    }
    ++count;
    batch.push_back({row.key, sealer_.seal(clear, row.key)});
    if (batch.size() < kRowsAtOnce) continue;
    if (auto written = write(); !written) return written.error();
  }
  if (is_marked_ && !is_marked) batch.push_back({std::string{kMarkRow}, sealer_.seal(kUnscrubbed, kMarkRow)});
  if (batch.empty()) return count;
  if (auto written = write(); !written) return written.error();
  return count;
}

Result<Snapshot> SealedStore::load() {
  auto snapshot = beneath_->load();
  if (!snapshot) return snapshot;
  std::erase_if(snapshot->rows, [](const Row& row) { return row.key == kMarkRow; });
  for (Row& row : snapshot->rows) {
    auto opened = sealer_.open(row.value, row.key);
    if (!opened) return unreadable_row(row.key, opened.error().reason);
    row.value = *std::move(opened);
  }
  return snapshot;
}

Result<Version> SealedStore::commit(const WriteBatch& batch, Version expected) {
  WriteBatch sealed;
  sealed.reserve(batch.size());
  for (const Write& each : batch) {
    sealed.push_back({each.key, std::nullopt});
    if (each.value) sealed.back().value = sealer_.seal(*each.value, each.key);
  }
  const bool adds_mark = !is_marked_ && !batch.empty();
  if (adds_mark) sealed.push_back({std::string{kMarkRow}, sealer_.seal(sealer_.newest(), kMarkRow)});
  auto version = beneath_->commit(sealed, expected);
  if (version && adds_mark) is_marked_ = true;
  return version;
}

}  // namespace windlass
