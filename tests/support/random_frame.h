// Any frame a session could send, from a seed: every body, every optional field there or not, values at the
// edges of the schemas and within.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "protocol/base/random.h"
#include "protocol/messages/frame.h"

namespace windlass::support {

class RandomFrame {
 public:
  RandomFrame(std::uint64_t seed, Revision revision);
  const Frame& frame() const { return frame_; }

 private:
  FrameBody body();
  Handshake handshake();
  Register registration();
  SessionAccept accept();
  Resume resume();
  Ack ack();
  Heartbeat heartbeat();
  Data data();

  bool coin() { return random_.one_in(2); }
  bool is_two() const { return revision_ == Revision::Two; }
  std::uint64_t number(std::uint64_t most);
  Duration interval(std::uint64_t least_ms = 0);
  double percent();
  // Views of texts that live as long as this.
  std::string_view keep(std::string text);
  std::string_view id(std::size_t characters_max = 128);
  std::string_view text(std::size_t characters_max);
  std::string_view json_object();
  std::string_view maybe(std::string_view text) { return coin() ? text : std::string_view{}; }

  Random random_;
  Revision revision_;
  std::deque<std::string> texts_;
  Frame frame_;
};

}  // namespace windlass::support
