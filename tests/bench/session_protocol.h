// A worker's side of a session, revision 2, as a load client speaks it: frames rendered from a template, the
// scheduler's frames told apart by their first bytes, acks with the next message or for a quarter of the
// window.
#pragma once

#include <memory>
#include <string>

#include "tests/bench/load_connection.h"

namespace windlass::bench {

struct SessionLoadOptions {
  std::string path = "/v1";
  std::string tenant = "acme";
  std::string instance;  // differs from connection to connection
  std::string token = "none";
  std::string type = "biz.echo";
  std::size_t frame_bytes = 512;  // of a whole message, about: numbers grow
  // What counts as an answer: the owner's own frame, or that the session took responsibility for ours.
  enum class Answer : std::uint8_t { Frame, Ack } answer = Answer::Frame;
  bool completes_commands = false;  // answers every frame of the scheduler with a result
  bool acks_at_once = false;        // as a worker does that has nothing else to say
};

std::unique_ptr<LoadProtocol> session_protocol(SessionLoadOptions options);

}  // namespace windlass::bench
