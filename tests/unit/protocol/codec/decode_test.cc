#include "protocol/codec/decode.h"
#include <gtest/gtest.h>
#include "protocol/codec/encode.h"
namespace windlass {
TEST(Smoke, RoundTrip) {
  Decoder d;
  std::string t =
      R"({"type":"biz.x","id":"1","ts":"2024-01-02T03:04:05.678Z","tenant":"t","sender":{"role":"worker","id":"w"},"seq":7,"ext":{"a":[1, {}]},"payload":{"k" : [1,2,{"z":"}"}]}})";
  const Frame* f = d.decode(t, MessageKind::Text, Expect::RevisionTwo);
  ASSERT_NE(f, nullptr) << d.violation().pointer << d.violation().reason;
  EXPECT_EQ(std::get<Data>(f->body).payload, R"({"k" : [1,2,{"z":"}"}]})");
  EXPECT_EQ(f->ext, R"({"a":[1, {}]})");
  std::string out;
  encode(*f, Revision::Two, out);
  EXPECT_EQ(
      out,
      R"({"type":"biz.x","id":"1","ts":"2024-01-02T03:04:05.678Z","seq":7,"tenant":"t","sender":{"role":"worker","id":"w"},"ext":{"a":[1, {}]},"payload":{"k" : [1,2,{"z":"}"}]}})");
}
TEST(Smoke, Pointer) {
  Decoder d;
  std::string t =
      R"({"type":"control.register","id":"1","ts":"2024-01-02T03:04:05.678Z","tenant":"t","sender":{"role":"worker","id":"w"},"payload":{"capabilities":{"concurrency":{"max_parallel":1},"runtimes":["a"]},"packages":[{"name":"a","version":"1","status":"x"}]}})";
  EXPECT_EQ(d.decode(t, MessageKind::Text, Expect::RevisionTwo), nullptr);
  EXPECT_EQ(d.violation().pointer, "/payload/packages/0/status");
  EXPECT_EQ(d.violation().frame_id, "1");
}
}  // namespace windlass
