#include "conformance/runner/dialect.h"

#include <gtest/gtest.h>

namespace windlass::conformance {
namespace {

json::object object(const char* text) {
  return json::parse(text).as_object();
}

//= REV-1
//= REV-4
TEST(Dialect, RevisionOneCountsFromOneInItsOwnField) {
  const json::object frame =
      object(R"({"type": "biz.x", "ts": "2026-11-16T08:00:00.123Z", "seq": 0, "payload": {}})");
  EXPECT_EQ(
      to_wire(frame, 1),
      object(
          R"({"type": "biz.x", "ts": "2026-11-16T08:00:00.123000+00:00", "session_seq": 1, "payload": {}})"));
  EXPECT_EQ(to_wire(frame, 2), frame);
}

//= REV-2
TEST(Dialect, RevisionOneWritesAckStateAsIntegersWithoutBytes) {
  EXPECT_EQ(to_wire(object(R"({"type": "control.ack", "payload": {"ok": true, "ack_seq": 4, "ack_bitmap": "a",
                               "recv_window": 256, "recv_window_bytes": 9, "dup": 1}})"),
                    1),
            object(R"({"type": "control.ack", "payload": {"ok": true, "ack_seq": 5, "ack_bitmap": 10,
                       "recv_window": 64}})"));
  EXPECT_EQ(
      to_wire(object(R"({"type": "control.ack", "payload": {"ok": true, "recv_window": 8}})"), 1),
      object(
          R"({"type": "control.ack", "payload": {"ok": true, "ack_seq": 0, "ack_bitmap": 0, "recv_window": 8}})"));
}

TEST(Dialect, WhatRevisionOneSaysReadsAsRevisionTwo) {
  EXPECT_EQ(
      from_wire(
          object(
              R"({"type": "control.ack", "corr": null, "session_seq": null, "ack": {"for": "x", "request": null},
                                 "payload": {"ok": true, "for": "x", "info": null, "ack_seq": 0, "ack_bitmap": 0,
                                             "recv_window": 64}})"),
          1),
      object(R"({"type": "control.ack", "ack": {"for": "x"},
                       "payload": {"ok": true, "for": "x", "recv_window": 64}})"));
  EXPECT_EQ(from_wire(object(R"({"type": "biz.x", "seq": 99, "session_seq": 3, "payload": {}})"), 1),
            object(R"({"type": "biz.x", "seq": 2, "payload": {}})"));
}

TEST(Dialect, ThereAndBackIsTheSame) {
  for (
      const char* const text :
      {R"({"type": "control.ack", "payload": {"ok": true, "ack_seq": 7, "ack_bitmap": "8000000000000001", "recv_window": 64}})",
       R"({"type": "control.resume", "payload": {"session_id": "s", "session_token": "t", "last_seen_seq": 0}})",
       R"({"type": "biz.y", "seq": 12, "payload": {"ack_seq": 1}})"}) {
    EXPECT_EQ(from_wire(to_wire(object(text), 1), 1), object(text)) << text;
  }
}

}  // namespace
}  // namespace windlass::conformance
