// The states of a session and the only table of moves between them. Both sides obey the same table; the file
// does not know which side it serves. docs/state-diagram.md is printed from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace windlass {

enum class SessionState { New, Handshaking, Registered, Ready, Draining, Backoff, Closed };

enum class SessionTrigger {
  ChannelOpened,      // a connection is up: the worker says who it is, the scheduler waits to hear it
  HandshakeAccepted,  // identity proved: register or resume comes next
  Accepted,           // control.session.accept sent or received, new or resumed
  AcceptedDraining,   // the same for a session that was draining when its connection broke
  DrainStarted,       // control.drain {start} sent or received
  DrainCompleted,     // control.drain {complete} acknowledged
  ChannelLost,        // the connection is gone, the session may resume
  Returned,           // the worker dials again, or the scheduler sees it come back
  Ended,              // over: reset by either side, not resumed in time, or given up by its owner
};

struct Transition {
  SessionState from;
  SessionTrigger trigger;
  SessionState to;
};

std::span<const Transition> transitions();

std::string_view to_string(SessionState state);
std::string_view to_string(SessionTrigger trigger);

// The table as a Mermaid state diagram.
std::string state_diagram();

// One session's place in the table. A move that the table does not know is refused and changes nothing.
class Lifecycle {
 public:
  SessionState state() const { return state_; }
  [[nodiscard]] bool apply(SessionTrigger trigger);

  bool is_closed() const { return state_ == SessionState::Closed; }

 private:
  SessionState state_ = SessionState::New;
};

}  // namespace windlass
