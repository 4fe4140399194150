#include "scheduler/adapters/sealed_store.h"

#include "scheduler/adapters/memory_store.h"
#include "tests/contract/state_store_contract.h"

namespace windlass {
namespace {

SealKey key_of(const std::string& kid) {
  return {kid, Bytes(kSealKeyBytes, kid.back())};
}

Result<SealedStore::Opened> open_sealed(const std::shared_ptr<MemoryImage>& image,
                                        const std::vector<std::string>& kids) {
  std::vector<SealKey> keys;
  for (const std::string& each : kids) keys.push_back(key_of(each));
  static std::uint64_t opened = 0;  // no two sealers have one salt
  Bytes salt = std::to_string(++opened);
  salt.resize(kSealSaltBytes, '.');
  return SealedStore::open(std::make_unique<MemoryStore>(image), *Sealer::create(std::move(keys), salt));
}

struct SealedHome {
  std::shared_ptr<MemoryImage> image = std::make_shared<MemoryImage>();

  std::unique_ptr<StateStore> open() { return std::move(open_sealed(image, {"k1"})->store); }
  std::unique_ptr<StateStore> open_small() {
    image->bytes_max = 200'000;
    return open();
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Sealed, StateStoreContract, SealedHome);

const std::vector<Row> kRows{{"app/acme/shop", R"({"settings":["KEY","marker"]})"},
                             {"command/acme/c-1", "{}"}};

bool shows(const MemoryImage& image, std::string_view text) {
  for (const auto& [key, value] : image.rows) {
    if (value.find(text) != Bytes::npos) return true;
  }
  return false;
}

TEST(SealedStore, NothingOfAValueShowsBeneath) {
  SealedHome home;
  const auto store = home.open();
  ASSERT_TRUE(store->commit({{kRows[0].key, kRows[0].value}}, Version{0}));
  EXPECT_FALSE(shows(*home.image, "marker"));
  EXPECT_FALSE(shows(*home.image, "settings"));
  EXPECT_EQ(home.open()->load()->rows, std::vector<Row>{kRows[0]});
}

TEST(SealedStore, AStoreInClearTextIsEncryptedWhenItIsOpened) {
  SealedHome home;
  MemoryStore clear{home.image};
  ASSERT_TRUE(clear.commit({{kRows[0].key, kRows[0].value}, {kRows[1].key, kRows[1].value}}, Version{0}));
  const auto opened = open_sealed(home.image, {"k1"});
  ASSERT_TRUE(opened) << opened.error().reason;
  EXPECT_EQ(opened->sealed_anew, 2U);
  EXPECT_FALSE(shows(*home.image, "marker"));
  EXPECT_EQ(opened->store->load()->rows, kRows);
  EXPECT_EQ(open_sealed(home.image, {"k1"})->sealed_anew, 0U);
}

TEST(SealedStore, ANewKeyEncryptsEverythingAnewAndThenTheOldOneMayGo) {
  SealedHome home;
  ASSERT_TRUE(home.open()->commit({{kRows[0].key, kRows[0].value}}, Version{0}));
  const auto lost = open_sealed(home.image, {"k2"});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::StoreInvalid);
  EXPECT_NE(lost.error().reason.find("key k1, which is not known"), std::string::npos) << lost.error().reason;
  EXPECT_EQ(open_sealed(home.image, {"k2", "k1"})->sealed_anew, 2U);  // with the mark
  EXPECT_EQ(open_sealed(home.image, {"k2"})->store->load()->rows, std::vector<Row>{kRows[0]});
}

// Counts how often it is scrubbed, and can end as a crash would instead.
class ScrubbedStore final : public StateStore {
 public:
  ScrubbedStore(std::shared_ptr<MemoryImage> image, int& scrubs, bool crashes)
      : beneath_(std::move(image)), scrubs_(scrubs), crashes_(crashes) {}
  Result<Snapshot> load() override { return beneath_.load(); }
  Result<Version> commit(const WriteBatch& batch, Version expected) override {
    return beneath_.commit(batch, expected);
  }
  Result<Done> scrub() override {
    if (crashes_) return Error{ErrorCode::StoreFailed, Blame::Local, "the process ends here"};
    ++scrubs_;
    return Done{};
  }

 private:
  MemoryStore beneath_;
  int& scrubs_;
  bool crashes_;
};

TEST(SealedStore, WhatACrashKeptFromBeingScrubbedIsScrubbedByTheNextStart) {
  const auto image = std::make_shared<MemoryImage>();
  MemoryStore clear{image};
  ASSERT_TRUE(clear.commit({{kRows[0].key, kRows[0].value}}, Version{0}));
  int scrubs = 0;
  const auto start = [&](const std::vector<std::string>& kids, bool crashes) {
    std::vector<SealKey> keys;
    for (const std::string& each : kids) keys.push_back(key_of(each));
    static std::uint64_t started = 0;
    Bytes salt = "s" + std::to_string(++started);
    salt.resize(kSealSaltBytes, '.');
    return SealedStore::open(std::make_unique<ScrubbedStore>(image, scrubs, crashes),
                             *Sealer::create(std::move(keys), salt))
        .has_value();
  };
  EXPECT_FALSE(start({"k1"}, true)) << "everything is sealed, and the clear text is not scrubbed";
  EXPECT_FALSE(shows(*image, "marker"));
  EXPECT_TRUE(start({"k1"}, false));
  EXPECT_EQ(scrubs, 1);
  EXPECT_TRUE(start({"k1"}, false));
  EXPECT_EQ(scrubs, 1) << "once is enough";
  EXPECT_FALSE(start({"k2", "k1"}, true)) << "likewise for a new key";
  EXPECT_TRUE(start({"k2", "k1"}, false));
  EXPECT_EQ(scrubs, 2);
  EXPECT_TRUE(start({"k2"}, false));
  EXPECT_EQ(scrubs, 2);
}

TEST(SealedStore, ARowThatWasMovedOrPutBackInClearTextIsRefused) {
  SealedHome home;
  ASSERT_TRUE(home.open()->commit({{kRows[0].key, kRows[0].value}}, Version{0}));
  const Bytes sealed = home.image->rows.at(kRows[0].key);
  home.image->rows["app/evil/shop"] = sealed;
  EXPECT_FALSE(open_sealed(home.image, {"k1"}));
  home.image->rows["app/evil/shop"] = kRows[0].value;
  EXPECT_FALSE(open_sealed(home.image, {"k1"}));
}

}  // namespace
}  // namespace windlass
