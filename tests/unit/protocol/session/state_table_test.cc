// The transition table, whole: a change of the state machine is a change of this file.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "protocol/session/session_state.h"

namespace windlass {
namespace {

const std::set<std::string> kMoves = {
    "NEW channel opened HANDSHAKING",
    "NEW channel lost BACKOFF",
    "NEW ended CLOSED",
    "HANDSHAKING handshake accepted REGISTERED",
    "HANDSHAKING channel lost BACKOFF",
    "HANDSHAKING ended CLOSED",
    "REGISTERED accepted READY",
    "REGISTERED accepted, draining DRAINING",
    "REGISTERED channel lost BACKOFF",
    "REGISTERED ended CLOSED",
    "READY drain started DRAINING",
    "READY channel lost BACKOFF",
    "READY ended CLOSED",
    "DRAINING drain completed CLOSED",
    "DRAINING channel lost BACKOFF",
    "DRAINING ended CLOSED",
    "BACKOFF returned NEW",
    "BACKOFF drain completed CLOSED",
    "BACKOFF ended CLOSED",
};

std::string text(SessionState from, SessionTrigger trigger, SessionState to) {
  return std::string{to_string(from)} + " " + std::string{to_string(trigger)} + " " +
         std::string{to_string(to)};
}

// A lifecycle in the state asked for, by the shortest way.
Lifecycle in(SessionState state) {
  using enum SessionTrigger;
  static const std::map<SessionState, std::vector<SessionTrigger>> kWays = {
      {SessionState::New, {}},
      {SessionState::Handshaking, {ChannelOpened}},
      {SessionState::Registered, {ChannelOpened, HandshakeAccepted}},
      {SessionState::Ready, {ChannelOpened, HandshakeAccepted, Accepted}},
      {SessionState::Draining, {ChannelOpened, HandshakeAccepted, Accepted, DrainStarted}},
      {SessionState::Backoff, {ChannelLost}},
      {SessionState::Closed, {Ended}},
  };
  Lifecycle lifecycle;
  for (const SessionTrigger trigger : kWays.at(state)) EXPECT_TRUE(lifecycle.apply(trigger));
  EXPECT_EQ(lifecycle.state(), state);
  return lifecycle;
}

TEST(StateTable, HoldsExactlyTheMovesOfTheSpecification) {
  //= STA-1
  std::set<std::string> moves;
  for (const Transition& each : transitions()) {
    EXPECT_TRUE(moves.insert(text(each.from, each.trigger, each.to)).second) << "listed twice";
  }
  EXPECT_EQ(moves, kMoves);
}

TEST(StateTable, RefusesEveryOtherMoveAndStaysWhereItWas) {
  //= STA-1
  for (int state = 0; state <= static_cast<int>(SessionState::Closed); ++state) {
    for (int trigger = 0; trigger <= static_cast<int>(SessionTrigger::Ended); ++trigger) {
      const auto from = static_cast<SessionState>(state);
      Lifecycle lifecycle = in(from);
      const bool moved = lifecycle.apply(static_cast<SessionTrigger>(trigger));
      const std::string move = text(from, static_cast<SessionTrigger>(trigger), lifecycle.state());
      EXPECT_EQ(moved, kMoves.contains(move)) << move;
      if (!moved) {
        EXPECT_EQ(lifecycle.state(), from);
      }
    }
  }
}

TEST(StateTable, LeavesClosedForNothing) {
  for (const Transition& each : transitions()) EXPECT_NE(each.from, SessionState::Closed);
}

TEST(StateTable, PrintsEveryMoveIntoTheDiagram) {
  const std::string diagram = state_diagram();
  for (const Transition& each : transitions()) {
    const std::string line = std::string{to_string(each.from)} + " --> " + std::string{to_string(each.to)} +
                             ": " + std::string{to_string(each.trigger)} + "\n";
    EXPECT_NE(diagram.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace windlass
