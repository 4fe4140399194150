// Revision 1, fact by fact: what the public peer sends is understood, and it is sent nothing else than it
// lists.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/limits.h"
#include "protocol/codec/decode.h"
#include "protocol/codec/encode.h"

namespace windlass {
namespace {

std::string text(std::string_view type, std::string_view payload, std::string_view more = "") {
  std::string out = R"({"type":")";
  out.append(type).append(R"(","id":"x-0","ts":"2026-11-16T08:00:00.123456+00:00","tenant":"acme",)");
  out.append(R"("sender":{"role":"worker","id":"w-1"})").append(more);
  return out.append(R"(,"payload":)").append(payload).append("}");
}

Frame frame_with(FrameBody body) {
  Frame frame;
  frame.id = "f-1";
  frame.ts = WallTime{milliseconds{1'700'000'000'123}};
  frame.tenant = "acme";
  frame.sender_role = Role::Scheduler;
  frame.sender_id = "s-1";
  frame.body = std::move(body);
  return frame;
}

std::string encoded(const Frame& frame) {
  std::string out;
  EXPECT_EQ(encode(frame, Revision::One, out), MessageKind::Text);
  return out;
}

constexpr std::string_view kHead = R"(,"tenant":"acme","sender":{"role":"scheduler","id":"s-1"},"payload":)";
constexpr std::string_view kTime = R"("id":"f-1","ts":"2023-11-14T22:13:20.123000+00:00")";

class Revision1Test : public ::testing::Test {
 protected:
  const Frame* decode(std::string_view message, Expect expect = Expect::RevisionOne,
                      MessageKind kind = MessageKind::Text) {
    message_ = message;
    return decoder_.decode(message_, kind, expect);
  }
  std::string refusal(std::string_view message) {
    return decode(message) != nullptr ? "accepted" : decoder_.violation().pointer;
  }
  Decoder decoder_;
  std::string message_;
};

TEST_F(Revision1Test, SessionSeqCountsFromOneAndTheCoreFromZero) {
  //= REV-1
  const Frame* frame = decode(text("biz.x", "{}", R"(,"session_seq":1)"));
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->seq, 0U);
  EXPECT_EQ(refusal(text("biz.x", "{}", R"(,"session_seq":0)")), "/session_seq");
  EXPECT_EQ(refusal(text("biz.x", "{}", R"(,"session_seq":null)")), "/session_seq");
  EXPECT_EQ(refusal(text("biz.x", "{}")), "/session_seq");
  EXPECT_EQ(refusal(text("control.drain", "{}", R"(,"session_seq":1)")), "/session_seq");
  EXPECT_EQ(refusal(text("control.drain", "{}", R"(,"session_seq":null)")), "accepted");

  Frame out = frame_with(Data{"biz.x", R"({"a":1})", std::nullopt});
  out.seq = 0;
  EXPECT_EQ(encoded(out), R"({"type":"biz.x",)" + std::string{kTime} + R"(,"session_seq":1)" +
                              std::string{kHead} + R"({"a":1}})");
}

TEST_F(Revision1Test, SeqIsABusinessNumberAndIgnored) {
  //= REV-1
  for (const std::string_view seq : {"null", "0", "-7", "18446744073709551615"}) {
    const Frame* frame = decode(text("biz.x", "{}", std::string{R"(,"session_seq":5,"seq":)"}.append(seq)));
    ASSERT_NE(frame, nullptr) << seq;
    EXPECT_EQ(frame->seq, 4U);
  }
}

TEST_F(Revision1Test, OptionalEnvelopeKeysMayBeNullOrAbsent) {
  //= REV-3
  const Frame* frame = decode(
      text("control.drain", "{}", R"(,"corr":null,"seq":null,"session_seq":null,"ack":null,"flags":null)"));
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->corr, "");
  frame = decode(text("control.drain", "{}", R"(,"ack":{"for":null,"request":null})"));
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->ack_for, "");
  EXPECT_FALSE(frame->ack_request);
  EXPECT_EQ(refusal(text("control.drain", "{}", R"(,"priority":1)")), "/priority");
}

TEST_F(Revision1Test, AckPositionsAndBitsAreIntegers) {
  //= REV-2
  const Frame* frame =
      decode(text("control.ack", R"({"ok":true,"for":"x","ack_seq":41,"ack_bitmap":5,"recv_window":64})"));
  ASSERT_NE(frame, nullptr);
  const Ack& ack = std::get<Ack>(frame->body);
  ASSERT_TRUE(ack.state.has_value());
  EXPECT_EQ(ack.state->owned_next, 41U) << "frames 1 to 41 of the wire are 0 to 40 of the core";
  EXPECT_TRUE(ack.state->held.test(0));
  EXPECT_FALSE(ack.state->held.test(1));
  EXPECT_TRUE(ack.state->held.test(2));
  EXPECT_EQ(ack.state->credit, (Credit{64, limits::kIntegerMax}));
}

TEST_F(Revision1Test, AckSeqZeroSaysNothingYet) {
  //= REV-2
  const Frame* frame =
      decode(text("control.ack", R"({"ok":true,"ack_seq":0,"ack_bitmap":0,"recv_window":1})"));
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(std::get<Ack>(frame->body).state->owned_next, 0U);
  EXPECT_TRUE(std::get<Ack>(frame->body).state->held.empty());

  Ack ack;
  ack.state.emplace();
  ack.state->credit = {4096, 1};
  ack.state->dup = 9;
  EXPECT_EQ(encoded(frame_with(ack)), R"({"type":"control.ack",)" + std::string{kTime} + std::string{kHead} +
                                          R"({"ok":true,"ack_seq":0,"ack_bitmap":0,"recv_window":64}})");
  ack.state->credit.frames = 0;
  EXPECT_NE(encoded(frame_with(ack)).find(R"("recv_window":1})"), std::string::npos) << "at least 1";
}

TEST_F(Revision1Test, ABitmapOf64BitsSurvives) {
  //= REV-2
  const Frame* frame =
      decode(text("control.ack", R"({"ok":true,"ack_seq":1,"ack_bitmap":18446744073709551615})"));
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(std::get<Ack>(frame->body).state->held.word(0), ~std::uint64_t{0});
  EXPECT_NE(encoded(frame_with(frame->body)).find(R"("ack_bitmap":18446744073709551615,)"),
            std::string::npos);
}

TEST_F(Revision1Test, AnAckWithoutAPositionHasNoState) {
  const Frame* frame = decode(text("control.ack", R"({"ok":true,"for":"x","info":null,"ack_seq":null})"));
  ASSERT_NE(frame, nullptr);
  EXPECT_FALSE(std::get<Ack>(frame->body).state.has_value());
}

TEST_F(Revision1Test, OnlyItsTwoRolesAreKnown) {
  //= REV-2
  std::string runtime = text("control.drain", "{}");
  runtime.replace(runtime.find("worker"), 6, "runtime");
  EXPECT_EQ(refusal(runtime), "/sender/role");
  Frame frame = frame_with(Drain{});
  frame.sender_role = Role::Runtime;
  EXPECT_NE(encoded(frame).find(R"("role":"scheduler")"), std::string::npos);
}

TEST_F(Revision1Test, ExtensionsAndAttachmentsAreNeitherTakenNorSent) {
  //= REV-2, REV-3
  EXPECT_EQ(refusal(text("control.drain", "{}", R"(,"ext":{})")), "/ext");
  EXPECT_EQ(refusal(text("biz.x", "{}", R"(,"session_seq":1,"attachment":{"bytes":0,"type":"x"})")),
            "/attachment");
  EXPECT_EQ(decode(std::string(4, '\0') + "{}", Expect::RevisionOne, MessageKind::Binary), nullptr);
  Frame frame = frame_with(Data{"biz.x", "{}", Attachment{"x", "bytes"}});
  frame.seq = 2;
  frame.ext = "{}";
  EXPECT_EQ(encoded(frame),
            R"({"type":"biz.x",)" + std::string{kTime} + R"(,"session_seq":3)" + std::string{kHead} + "{}}");
}

TEST_F(Revision1Test, TimesAreSentWithMicrosecondsAndAnOffset) {
  //= REV-4
  EXPECT_NE(encoded(frame_with(Drain{})).find(R"("ts":"2023-11-14T22:13:20.123000+00:00")"),
            std::string::npos);
}

TEST_F(Revision1Test, AcceptResumeAndDrainCarryOnlyWhatItLists) {
  //= REV-3
  SessionAccept accept;
  accept.session_id = "s";
  accept.session_token = "t";
  accept.worker_instance_id = "w";
  accept.expires_at = WallTime{milliseconds{1'700'000'000'000}};
  accept.resumed = true;
  accept.received_next = 5;
  accept.credit = {1, 2};
  EXPECT_NE(encoded(frame_with(accept))
                .find(R"("payload":{"session_id":"s","session_token":"t","worker_instance_id":"w",)"
                      R"("expires_at":"2023-11-14T22:13:20.000000+00:00","resumed":true}})"),
            std::string::npos);
  Resume resume;
  resume.session_id = "s";
  resume.session_token = "t";
  resume.received_next = 5;
  resume.earliest_retained = 3;
  EXPECT_NE(encoded(frame_with(resume))
                .find(R"("payload":{"session_id":"s","session_token":"t","last_seen_seq":5}})"),
            std::string::npos);
  EXPECT_NE(encoded(frame_with(Drain{DrainPhase::Start, "r", seconds{1}}))
                .find(R"("payload":{"reason":"r","deadline_ms":1000}})"),
            std::string::npos);
}

TEST_F(Revision1Test, LastSeenSeqCountsFromOne) {
  //= REV-2
  for (const auto& [seen, next] : {std::pair{"0", 0U}, std::pair{"null", 0U}, std::pair{"41", 41U}}) {
    const Frame* frame = decode(text(
        "control.resume",
        std::string{R"({"session_id":"s","session_token":"t","last_seen_seq":)"}.append(seen).append("}")));
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(std::get<Resume>(frame->body).received_next, next);
  }
}

constexpr std::string_view kWorker = R"("worker":{"worker_name":"n","version":"1","hostname":"h"})";

TEST_F(Revision1Test, BeforeTheHandshakeItsProtocolDecides) {
  const std::string one =
      std::string{R"({"protocol":1,"auth":{"mode":"token","token":"t"},)"}.append(kWorker).append("}");
  const Frame* frame = decode(text("control.handshake", one, R"(,"ack":{"request":true})"), Expect::Any);
  ASSERT_NE(frame, nullptr) << decoder_.violation().pointer;
  EXPECT_EQ(frame->revision, Revision::One);
  EXPECT_EQ(std::get<Handshake>(frame->body).worker_instance_id, "");
  std::string two = one;
  two.replace(two.find('1'), 1, "2");
  EXPECT_EQ(decode(text("control.handshake", two), Expect::Any), nullptr);
  EXPECT_EQ(decoder_.violation().pointer, "/payload/worker/worker_instance_id") << "required in revision 2";
  two.insert(two.find("\"worker_name\""), R"("worker_instance_id":"w-1",)");
  frame = decode(text("control.handshake", two), Expect::Any);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->revision, Revision::Two);
}

TEST_F(Revision1Test, AHandshakeOfAnotherRevisionIsReadAsFarAsItsProtocol) {
  //= HSK-2
  for (
      const std::string_view rest :
      {R"(,"auth":{"mode":"mtls"},"worker":{"worker_instance_id":"i","worker_name":"n","version":"1","hostname":"h"})",
       R"(,"auth":{"mode":"passkey"},"resume":{"protocol":1})", "", R"(,"worker":7,"worker":8)"}) {
    for (const std::uint64_t protocol : {std::uint64_t{0}, std::uint64_t{3}, limits::kIntegerMax}) {
      const std::string payload = R"({"protocol":)" + std::to_string(protocol) + std::string{rest} + "}";
      const Frame* frame = decode(text("control.handshake", payload), Expect::Any);
      ASSERT_NE(frame, nullptr) << payload << decoder_.violation().pointer;
      EXPECT_EQ(std::get<Handshake>(frame->body).protocol, protocol);
      EXPECT_EQ(std::get<Handshake>(frame->body).worker_instance_id, "");
    }
  }
}

TEST_F(Revision1Test, AHandshakeOfAnotherRevisionNeedsAValidEnvelope) {
  //= HSK-2
  EXPECT_EQ(decode(text("control.handshake", R"({"protocol":3})", R"(,"colour":"red")"), Expect::Any),
            nullptr);
  EXPECT_EQ(decoder_.violation().pointer, "/colour");
  EXPECT_EQ(decode(text("control.handshake", R"({"protocol":3})", R"(,"seq":1)"), Expect::Any), nullptr);
  EXPECT_EQ(decoder_.violation().pointer, "/seq");
  EXPECT_EQ(decode(text("control.handshake", R"({"protocol":3})", R"(,"payload":{})"), Expect::Any), nullptr);
  EXPECT_EQ(decoder_.violation().pointer, "/payload");
}

TEST_F(Revision1Test, WhatNamesNoRevisionBreaksTheSchemaOfRevisionTwo) {
  //= HSK-2, ENV-7
  for (const std::string_view protocol : {"-1", "3.0", "\"3\"", "null", "[3]", "9007199254740992"}) {
    const std::string payload = std::string{R"({"protocol":)"}.append(protocol).append("}");
    EXPECT_EQ(decode(text("control.handshake", payload), Expect::Any), nullptr) << protocol;
    EXPECT_EQ(decoder_.violation().code, ErrorCode::ProtoSchema);
    EXPECT_EQ(decoder_.violation().pointer, "/payload/protocol");
  }
  EXPECT_EQ(decode(text("control.handshake", "{}"), Expect::Any), nullptr);
  EXPECT_EQ(decoder_.violation().code, ErrorCode::ProtoSchema);
}

TEST_F(Revision1Test, AfterTheFirstFrameAHandshakeIsJudgedWhole) {
  EXPECT_EQ(decode(text("control.handshake", R"({"protocol":3})"), Expect::RevisionTwo), nullptr);
  EXPECT_EQ(decoder_.violation().code, ErrorCode::ProtoSchema);
}

TEST_F(Revision1Test, AResumeAsFirstFrameIsRevisionOnes) {
  //= REV-6
  const std::string resume = text("control.resume", R"({"session_id":"s","session_token":"t"})");
  const Frame* frame = decode(resume, Expect::Any);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->revision, Revision::One);
  EXPECT_EQ(decode(resume, Expect::RevisionTwo), nullptr);
  // One of revision 2 is read as such, so that the session can say what should have come first.
  const std::string early =
      text("control.resume", R"({"session_id":"s","session_token":"t","earliest_retained_seq":0,)"
                             R"("recv_window":1,"recv_window_bytes":1})");
  frame = decode(early, Expect::Any);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->revision, Revision::Two);
}

TEST_F(Revision1Test, AnythingElseAsFirstFrameIsReadByEitherRevision) {
  const Frame* frame = decode(text("biz.x", "{}", R"(,"seq":0)"), Expect::Any);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->revision, Revision::Two);
  frame = decode(text("biz.x", "{}", R"(,"session_seq":1)"), Expect::Any);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->revision, Revision::One);
  EXPECT_EQ(decode(text("biz.x", "{}", R"(,"seq":-1)"), Expect::Any), nullptr);
  EXPECT_EQ(decoder_.violation().pointer, "/seq") << "revision 2's rule is the one reported";
}

}  // namespace
}  // namespace windlass
