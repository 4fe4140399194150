// FunctionRpc messages on a session: each is the attachment of a `biz.functionrpc` message. Small ones that
// wait together go together, because a frame costs more than what is in it. One that is larger than a part
// goes in parts, between which others pass, so that a large one blocks nobody.
//
// Order: messages of one lane stay in order; a lane is an invocation's messages, and all that belong to none
// form one. What does not fit into a part at most lets messages of other lanes by. WorkerEnded lets nothing
// by: what its worker answered before must be here when the runtime settles the rest.
//
//   whole:   payload {}
//   several: payload {"many":true}; the attachment has 4 bytes of length, big endian, before each
//   a part:  payload {"message": "<name, unique on the session>", "offset": 262144, "total": 1048576}; parts
//   come in order
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/result.h"
#include "protocol/messages/message.h"

namespace windlass::function_rpc {

inline constexpr std::string_view kMessageType = "biz.functionrpc";
inline constexpr std::string_view kAttachmentType = "application/x-protobuf";
inline constexpr std::string_view kMany = R"({"many":true})";

struct ChannelLimits {
  std::size_t message_bytes_max = 128 * 1024 * 1024;
  std::size_t part_bytes = 256 * 1024;
  std::size_t together_bytes = 15 * 1024;             // of small ones in one frame: a TLS record holds 16 KiB
  std::size_t queue_messages_max = 10'000;            // waiting for credit
  std::size_t queue_bytes_max = 256 * 1024 * 1024;    // likewise
  std::size_t partial_bytes_max = 512 * 1024 * 1024;  // of messages whose end has not come
  std::size_t partial_messages_max = 256;             // likewise; a sender of ours begins fewer
};

class ChannelSender final {
 public:
  // Ids of the session's messages begin with the prefix: different for every channel of a sender, since an id
  // names one for ever.
  ChannelSender(const ChannelLimits& limits, std::string id_prefix);

  // E.LIMIT.FRAME: it can never be sent. E.SESSION.WOULD_BLOCK: the queue is full. Else it was taken.
  [[nodiscard]] Result<Done> push(std::string message);

  // Gives messages to `send(Message&&) -> Result<Seq>` until none waits or it refuses; a refused one is given
  // again later. The first refusal, if any, is returned: E.SESSION.WOULD_BLOCK means later, anything else
  // that the session is over.
  template <class SendMessage>
  [[nodiscard]] std::optional<Error> pump(SendMessage&& send) {
    while (held_ || make_next()) {
      if (Result<Seq> sent = send(std::move(*held_)); !sent) return sent.error();
      held_.reset();
    }
    return std::nullopt;
  }

  bool is_full() const {
    return messages_ >= limits_.queue_messages_max || bytes_ >= limits_.queue_bytes_max;
  }
  bool is_empty() const { return messages_ == 0 && !held_; }
  std::size_t messages() const { return messages_; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Item {
    std::string bytes;
    std::size_t offset = 0;
    std::string name = {};
  };

  void place(std::string message);
  bool make_next();  // fills held_
  void make_whole(const Item& item);
  bool make_many();
  void make_part();
  std::string next_id();

  ChannelLimits limits_;
  std::string prefix_;
  std::uint64_t counter_ = 0;
  std::deque<Item> small_;
  std::map<std::string, std::deque<Item>, std::less<>> lanes_;  // those with a large message in front
  std::deque<std::string> turn_;                                // their names, the next to be served first
  std::deque<std::string> behind_;  // a WorkerEnded, once lanes are empty, and all that was said after it
  std::size_t before_lanes_ =
      0;  // of small_: those that were queued before the newest lane, and go before any part
  std::size_t small_bytes_ = 0;  // sent since the last part
  std::size_t messages_ = 0;
  std::size_t bytes_ = 0;
  std::optional<Message> held_;
};

class ChannelReceiver final {
 public:
  explicit ChannelReceiver(const ChannelLimits& limits) : limits_(limits) {}

  // Gives every FunctionRpc message that is complete now to `each(std::string_view)`, in order; valid during
  // the call. An error is a peer that breaks these rules, or one message over the limit.
  template <class Each>
  [[nodiscard]] Result<Done> take(const Message& message, Each&& each) {
    if (message.payload() != kMany) {
      std::string complete;  // no longer than the call: idle peers hold nothing
      const Result<std::optional<std::string_view>> whole = take_one(message, complete);
      if (!whole) return whole.error();
      if (*whole) each(**whole);
      return Done{};
    }
    const std::optional<Attachment> attachment = message.attachment();
    std::string_view rest = attachment ? attachment->bytes : std::string_view{};
    do {
      const Result<std::string_view> next = take_next(rest);
      if (!next) return next.error();
      each(*next);
    } while (!rest.empty());
    return Done{};
  }

  // Of messages whose end has not come: what is in memory.
  std::size_t held_bytes() const { return held_bytes_; }
  void drop_unfinished();

 private:
  // What came in parts is put together in `complete`.
  Result<std::optional<std::string_view>> take_one(const Message& message, std::string& complete);
  Result<std::string_view> take_next(std::string_view& rest) const;
  struct Part {
    std::string message;
    std::uint64_t offset = 0;
    std::uint64_t total = 0;
  };
  struct Partial {
    std::size_t total = 0;
    std::string bytes;
  };
  static Result<Part> read_part(std::string_view payload);

  ChannelLimits limits_;
  std::map<std::string, Partial, std::less<>> partial_;
  std::size_t partial_bytes_ = 0;  // announced, not only received
  std::size_t held_bytes_ = 0;     // received
};

}  // namespace windlass::function_rpc
