// One worker's FunctionRpc stream, whatever carries it: a session or gRPC. Messages are serialized
// StreamingMessages; what is in them is not the channel's business.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

enum class SendStatus : std::uint8_t {
  Sent,      // taken
  Blocked,   // taken, but the queue is full: send no more before Writable
  Full,      // not taken: it was sent after Blocked; Writable follows
  TooLarge,  // not taken, and never will be
  Closed,    // not taken; on_closed follows, or came already
};

class WorkerChannel {
 public:
  virtual ~WorkerChannel() = default;
  // Order is kept as far as it matters: all messages of one invocation, and all that belong to none.
  virtual SendStatus send(std::string bytes) = 0;
  // What was sent before goes out first. No event of this channel follows.
  virtual void close(bool is_clean, std::string_view reason) = 0;
};

enum class ChannelNews : std::uint8_t {
  Detached,  // no connection for now; nothing is lost
  Attached,
  Leaving,   // its peer wants nothing new
  Unfit,     // its peer is short of memory or disk, or not well by its own word
  Fit,       // after Unfit
  Writable,  // after Blocked
  Broken,    // the peer broke the channel's own rules; close it
};

// All calls come on the runtime's loop, and never from inside a call to the channel.
class ChannelEvents {
 public:
  virtual ~ChannelEvents() = default;
  // The channel lives until its on_closed returned, or until close() was called.
  virtual ChannelId on_channel_opened(WorkerChannel& channel, ChannelFacts facts) = 0;
  virtual void on_channel_message(ChannelId id, std::string_view bytes) = 0;  // valid during the call
  virtual void on_channel_news(ChannelId id, ChannelNews news, std::string_view reason) = 0;
  virtual void on_channel_closed(ChannelId id, ChannelEnd end, std::string_view reason) = 0;
};

}  // namespace windlass::runtime
