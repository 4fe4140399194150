#include "protocol/session/session_state.h"

#include <array>

namespace windlass {
namespace {

using S = SessionState;
using T = SessionTrigger;

//= STA-1
constexpr std::array kTransitions = {
    Transition{S::New, T::ChannelOpened, S::Handshaking},
    Transition{S::New, T::ChannelLost, S::Backoff},
    Transition{S::New, T::Ended, S::Closed},

    Transition{S::Handshaking, T::HandshakeAccepted, S::Registered},
    Transition{S::Handshaking, T::ChannelLost, S::Backoff},
    Transition{S::Handshaking, T::Ended, S::Closed},

    Transition{S::Registered, T::Accepted, S::Ready},
    Transition{S::Registered, T::AcceptedDraining, S::Draining},
    Transition{S::Registered, T::ChannelLost, S::Backoff},
    Transition{S::Registered, T::Ended, S::Closed},

    Transition{S::Ready, T::DrainStarted, S::Draining},
    Transition{S::Ready, T::ChannelLost, S::Backoff},
    Transition{S::Ready, T::Ended, S::Closed},

    Transition{S::Draining, T::DrainCompleted, S::Closed},
    Transition{S::Draining, T::ChannelLost, S::Backoff},
    Transition{S::Draining, T::Ended, S::Closed},

    Transition{S::Backoff, T::Returned, S::New},
    Transition{S::Backoff, T::DrainCompleted, S::Closed},
    Transition{S::Backoff, T::Ended, S::Closed},
};

}  // namespace

std::span<const Transition> transitions() {
  return kTransitions;
}

bool Lifecycle::apply(SessionTrigger trigger) {
  for (const Transition& transition : kTransitions) {
    if (transition.from == state_ && transition.trigger == trigger) {
      state_ = transition.to;
      return true;
    }
  }
  return false;
}

std::string_view to_string(SessionState state) {
  switch (state) {
    case S::New:
      return "NEW";
    case S::Handshaking:
      return "HANDSHAKING";
    case S::Registered:
      return "REGISTERED";
    case S::Ready:
      return "READY";
    case S::Draining:
      return "DRAINING";
    case S::Backoff:
      return "BACKOFF";
    case S::Closed:
      return "CLOSED";
  }
  return "";
}

std::string_view to_string(SessionTrigger trigger) {
  switch (trigger) {
    case T::ChannelOpened:
      return "channel opened";
    case T::HandshakeAccepted:
      return "handshake accepted";
    case T::Accepted:
      return "accepted";
    case T::AcceptedDraining:
      return "accepted, draining";
    case T::DrainStarted:
      return "drain started";
    case T::DrainCompleted:
      return "drain completed";
    case T::ChannelLost:
      return "channel lost";
    case T::Returned:
      return "returned";
    case T::Ended:
      return "ended";
  }
  return "";
}

std::string state_diagram() {
  std::string text = "stateDiagram-v2\n    [*] --> NEW\n";
  for (const Transition& transition : kTransitions) {
    text += "    ";
    text += to_string(transition.from);
    text += " --> ";
    text += to_string(transition.to);
    text += ": ";
    text += to_string(transition.trigger);
    text += '\n';
  }
  text += "    CLOSED --> [*]\n";
  return text;
}

}  // namespace windlass
