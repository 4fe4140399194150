// Every wrong input after the accept in one table: the one answer it gets and the state it leaves.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/lone_scheduler.h"
#include "tests/support/lone_worker.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::LoneWorker;
using testing::message;
using testing::SessionPair;

enum class Answer { Reset, Refusal, Ack, Nothing };

struct Case {
  std::string name;
  std::function<void(LoneScheduler&, ConnectionId)> input;
  Answer answer;
  std::string code;
};

Ack with_bit(std::size_t bit) {
  Ack body = LoneScheduler::ack(0);
  body.state->held.set(bit);
  return body;
}

std::vector<Case> cases() {
  using S = LoneScheduler&;
  using C = ConnectionId;
  const auto bad = [](ErrorCode code, std::string_view type) {
    return [code, type](S s, C c) {
      s.endpoint.handle_bad_frame(c, {code, "bad", type, "/x: why"}, s.now());
      s.settle();
    };
  };
  return {
      {"not JSON", bad(ErrorCode::ProtoJson, ""), Answer::Refusal, "E.PROTO.JSON"},
      {"a broken payload", bad(ErrorCode::ProtoSchema, "biz.test"), Answer::Refusal, "E.PROTO.SCHEMA"},
      {"too large", bad(ErrorCode::LimitFrame, ""), Answer::Refusal, "E.LIMIT.FRAME"},
      {"a broken ack", bad(ErrorCode::ProtoSchema, "control.ack"), Answer::Nothing, ""},
      {"a broken reset", bad(ErrorCode::ProtoSchema, "control.reset"), Answer::Nothing, ""},
      {"a seq far outside", [](S s, C c) { s.say_data(c, limits::kIntegerMax); }, Answer::Ack, ""},
      {"a seq at the edge", [](S s, C c) { s.say_data(c, 256); }, Answer::Ack, ""},
      {"an ack of what was never sent", [](S s, C c) { s.say(c, LoneScheduler::ack(2)); }, Answer::Reset,
       "E.SESSION.ACK_INVALID"},
      {"an ack of the largest number", [](S s, C c) { s.say(c, LoneScheduler::ack(limits::kIntegerMax)); },
       Answer::Reset, "E.SESSION.ACK_INVALID"},
      {"a bit of what was never sent", [](S s, C c) { s.say(c, with_bit(1)); }, Answer::Reset,
       "E.SESSION.ACK_INVALID"},
      {"the highest bit", [](S s, C c) { s.say(c, with_bit(AckBitmap::kBitsMax - 1)); }, Answer::Reset,
       "E.SESSION.ACK_INVALID"},
      {"another tenant", [](S s, C c) { s.say(c, Heartbeat{}, {.tenant = "globex"}); }, Answer::Reset,
       "E.SESSION.TENANT_MISMATCH"},
      {"another sender", [](S s, C c) { s.say(c, Heartbeat{}, {.sender_id = "i-2"}); }, Answer::Reset,
       "E.SESSION.MISMATCH"},
      {"another role", [](S s, C c) { s.say(c, Heartbeat{}, {.role = Role::Scheduler}); }, Answer::Reset,
       "E.SESSION.MISMATCH"},
      {"a second handshake", [](S s, C c) { s.say(c, LoneScheduler::handshake()); }, Answer::Refusal,
       "E.PROTO.STATE"},
      {"a resume", [](S s, C c) { s.say(c, Resume{}); }, Answer::Refusal, "E.PROTO.STATE"},
      {"an accept", [](S s, C c) { s.say(c, SessionAccept{}); }, Answer::Refusal, "E.PROTO.STATE"},
      {"a completion without a drain",
       [](S s, C c) {
         s.say(c, Drain{DrainPhase::Complete, {}, {}});
       },
       Answer::Refusal, "E.PROTO.STATE"},
      {"an unknown control frame", [](S s, C c) { s.say(c, UnknownControl{"control.new"}); }, Answer::Refusal,
       "E.CMD.UNKNOWN"},
      {"a refusal of nothing",
       [](S s, C c) { s.say(c, Ack{.ok = false, .for_id = "who", .info = "?", .state = {}}); },
       Answer::Nothing, ""},
      {"an ack for nothing",
       [](S s, C c) { s.say(c, Ack{.ok = true, .for_id = "who", .info = {}, .state = {}}); }, Answer::Nothing,
       ""},
      {"a reset",
       [](S s, C c) {
         s.say(c, Reset{"E.WHATEVER", "", {}});
       },
       Answer::Nothing, ""},
  };
}

TEST(BadInput, HasOneAnswerAndLeavesTheSessionInANamedState) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    scheduler.make_ready(connection);
    const SessionHandle handle = scheduler.handle();
    ASSERT_TRUE(scheduler.endpoint.send(handle, message("kept"), scheduler.now()));
    scheduler.settle();
    scheduler.notes[connection].clear();
    each.input(scheduler, connection);

    const auto& notes = scheduler.notes[connection];
    EXPECT_EQ(notes.size(), each.answer == Answer::Nothing ? 0U : 1U);
    const bool over = each.answer == Answer::Reset || each.name == "a reset";
    //= STA-2
    ASSERT_EQ(scheduler.session() == nullptr, over);
    if (over) {
      // The owner was told why, and got back what the peer had not taken.
      ASSERT_EQ(scheduler.seen<Ended>().size(), 1U);
      EXPECT_FALSE(scheduler.seen<Ended>()[0].code.empty());
      EXPECT_EQ(scheduler.seen<Ended>()[0].returned.size(), 1U);
      EXPECT_EQ(scheduler.closes.count(connection), 1U);
      EXPECT_EQ(scheduler.endpoint.connections(), 0U);
    } else {
      EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
      EXPECT_TRUE(scheduler.closes.empty());
    }
    if (each.answer == Answer::Reset) {
      EXPECT_EQ(notes.at(0).type, "control.reset");
      EXPECT_EQ(notes.at(0).code, each.code);
    } else if (each.answer == Answer::Refusal) {
      EXPECT_EQ(notes.at(0).type, "control.ack");
      EXPECT_FALSE(notes.at(0).ok);
      EXPECT_TRUE(notes.at(0).info.starts_with(each.code)) << notes.at(0).info;
    } else if (each.answer == Answer::Ack) {
      EXPECT_EQ(notes.at(0).type, "control.ack");
      EXPECT_TRUE(notes.at(0).ok);
    }
    EXPECT_TRUE(scheduler.seen<Delivered>().empty()) << "nothing of it reaches the owner as a message";
  }
}

TEST(BadInput, ToAWorkerHasTheSameAnswers) {
  struct WorkerCase {
    std::string name;
    FrameBody body;
    std::string reset;
    std::string refusal;
  };
  const std::vector<WorkerCase> worker_cases = {
      {"an ack lie", LoneWorker::ack(1), "E.SESSION.ACK_INVALID", ""},
      {"a heartbeat", Heartbeat{}, "", "E.PROTO.STATE"},
      {"a registration", LoneScheduler::registration(), "", "E.PROTO.STATE"},
      {"a handshake", LoneScheduler::handshake(), "", "E.PROTO.STATE"},
      {"a resume", Resume{}, "", "E.PROTO.STATE"},
      {"an accept of another session", SessionAccept{}, "", "E.SESSION.MISMATCH"},
      {"an unknown control frame", UnknownControl{"control.new"}, "", "E.CMD.UNKNOWN"},
  };
  for (const WorkerCase& each : worker_cases) {
    SCOPED_TRACE(each.name);
    LoneWorker worker;
    worker.make_ready();
    worker.say(each.body);
    ASSERT_EQ(worker.notes.size(), 1U);
    //= STA-2
    if (!each.reset.empty()) {
      EXPECT_EQ(worker.notes[0].code, each.reset);
      EXPECT_EQ(worker.seen<Ended>().size(), 1U);
      EXPECT_EQ(worker.endpoint.state(), SessionState::Backoff);
    } else {
      EXPECT_FALSE(worker.notes[0].ok);
      EXPECT_TRUE(worker.notes[0].info.starts_with(each.refusal)) << worker.notes[0].info;
      EXPECT_EQ(worker.endpoint.state(), SessionState::Ready);
    }
  }
}

TEST(BadInput, OfAnOwnerIsRefusedBeforeItCanCostTheSession) {
  SessionPair pair;
  pair.start();
  const auto refuses = [&](const MessageParts& parts) {
    const auto sent = pair.worker.send(Message{parts}, pair.now());
    return !sent && sent.error().code == ErrorCode::ProtoSchema;
  };
  const Attachment nameless{"", "x"};
  const std::string long_type(limits::kTypeBytesMax + 1, 'x');
  const Attachment overlong{long_type, "x"};
  //= TRN-4
  EXPECT_TRUE(refuses({.type = "biz.x", .id = "1", .payload = "{\"x\":\"\xff\"}"}));
  //= ENV-2
  for (const char* type : {"biz.", "biz", "biz.a b", "biz..a", "control.ack", "biz.\xc3\xa9", "biz.a."}) {
    EXPECT_TRUE(refuses({.type = type, .id = "1", .payload = "{}"})) << type;
  }
  EXPECT_TRUE(refuses({.type = "biz.x", .id = "1", .payload = "{}", .attachment = nameless}));
  EXPECT_TRUE(refuses({.type = "biz.x", .id = "1", .payload = "{}", .attachment = overlong}));
  EXPECT_TRUE(pair.worker.send(Message{{.type = "ext.a-b.c_1", .id = "1", .payload = "{\"x\":\"\xc3\xa9\"}"}},
                               pair.now()));
}

}  // namespace
}  // namespace windlass
