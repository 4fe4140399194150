#include "protocol/function_rpc/session_channel.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "protocol/base/big_endian.h"
#include "protocol/base/check.h"
#include "protocol/base/limits.h"
#include "protocol/function_rpc/peek.h"

namespace windlass::function_rpc {
namespace {

constexpr std::string_view kWhole = "{}";
constexpr std::size_t kLanesAtOnce = 64;  // whose parts take turns

bool is_parting(std::string_view message) {
  const Result<Peeked> peeked = peek(message);
  return peeked && peeked->content == Content::WorkerEnded;
}

Error broken(std::string reason) {
  return {ErrorCode::ProtoSchema, Blame::Peer, std::move(reason)};
}

}  // namespace

ChannelSender::ChannelSender(const ChannelLimits& limits, std::string id_prefix)
    : limits_(limits), prefix_(std::move(id_prefix)) {
  CHECK(limits_.part_bytes > 0);
}

Result<Done> ChannelSender::push(std::string message) {
  if (message.size() > limits_.message_bytes_max) {
    return Error{ErrorCode::LimitFrame, Blame::Local,
                 "a FunctionRpc message of " + std::to_string(message.size()) +
                     " bytes is over the limit of " + std::to_string(limits_.message_bytes_max)};
  }
  if (is_full()) return Error{ErrorCode::SessionWouldBlock, Blame::Peer, "the worker's queue is full"};
  ++messages_;
  bytes_ += message.size();
  if (!behind_.empty() || (!lanes_.empty() && is_parting(message))) {
    behind_.push_back(std::move(message));
  } else {
    place(std::move(message));
  }
  return Done{};
}

void ChannelSender::place(std::string message) {
  const bool is_large = message.size() > limits_.part_bytes;
  if (!is_large && lanes_.empty()) return small_.push_back({std::move(message)});
  const Result<Peeked> peeked = peek(message);
  std::string lane{peeked ? peeked->invocation_id : std::string_view{}};
  if (const auto waiting = lanes_.find(lane); waiting != lanes_.end()) {
    waiting->second.push_back({std::move(message)});
  } else if (!is_large) {
    small_.push_back({std::move(message)});
  } else {
    before_lanes_ = small_.size();  // the lane's own may be among them
    turn_.push_back(lane);
    lanes_[std::move(lane)].push_back({std::move(message)});
  }
}

bool ChannelSender::make_next() {
  // Nobody waits here for anything but lanes.
  while (!behind_.empty() && (lanes_.empty() || !is_parting(behind_.front()))) {
    place(std::move(behind_.front()));
    behind_.pop_front();
  }
  if (small_.empty() && turn_.empty()) return false;
  // Byte by byte fair between the small ones and the lanes, small ones first.
  const bool is_part_due =
      !turn_.empty() && (small_.empty() || (small_bytes_ >= limits_.part_bytes && before_lanes_ == 0));
  if (is_part_due) {
    small_bytes_ = 0;
    make_part();
    return true;
  }
  if (turn_.empty() && make_many()) return true;
  Item item = std::move(small_.front());
  small_.pop_front();
  if (before_lanes_ > 0) --before_lanes_;
  if (!turn_.empty()) small_bytes_ += item.bytes.size() + 1;
  make_whole(item);
  return true;
}

void ChannelSender::make_whole(const Item& item) {
  const std::string id = next_id();
  held_.emplace(MessageParts{.type = kMessageType,
                             .id = id,
                             .payload = kWhole,
                             .attachment = Attachment{kAttachmentType, item.bytes}});
  --messages_;
  bytes_ -= item.bytes.size();
}

// Only while no lane waits: what goes between parts goes one by one. False: there are no two that fit.
bool ChannelSender::make_many() {
  constexpr std::size_t kLengthBytes = 4;
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (; count < small_.size(); ++count) {
    bytes += small_[count].bytes.size() + kLengthBytes;
    if (bytes > limits_.together_bytes) break;
  }
  if (count < 2) return false;
  std::string together;
  together.reserve(limits_.together_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& each = small_.front().bytes;
    append_big_endian(together, each.size(), kLengthBytes);
    together += each;
    bytes_ -= each.size();
    small_.pop_front();
  }
  messages_ -= count;
  before_lanes_ = 0;
  const std::string id = next_id();
  held_.emplace(MessageParts{
      .type = kMessageType, .id = id, .payload = kMany, .attachment = Attachment{kAttachmentType, together}});
  return true;
}

void ChannelSender::make_part() {
  const std::string lane = std::move(turn_.front());
  turn_.pop_front();
  const auto found = lanes_.find(lane);
  CHECK(found != lanes_.end());
  std::deque<Item>& items = found->second;
  Item& item = items.front();
  if (item.bytes.size() <= limits_.part_bytes) {
    make_whole(item);
    items.pop_front();
  } else {
    const std::string id = next_id();
    if (item.name.empty()) item.name = id;
    const std::string_view part = std::string_view{item.bytes}.substr(item.offset, limits_.part_bytes);
    const std::string payload = R"({"message":")" + item.name + R"(","offset":)" +
                                std::to_string(item.offset) + R"(,"total":)" +
                                std::to_string(item.bytes.size()) + "}";
    held_.emplace(MessageParts{
        .type = kMessageType, .id = id, .payload = payload, .attachment = Attachment{kAttachmentType, part}});
    item.offset += part.size();
    if (item.offset == item.bytes.size()) {
      --messages_;
      bytes_ -= item.bytes.size();
      items.pop_front();
    }
  }
  if (items.empty()) {
    lanes_.erase(found);
  } else {
    const std::size_t place = std::min(turn_.size(), kLanesAtOnce - 1);
    turn_.insert(turn_.begin() + static_cast<std::ptrdiff_t>(place), lane);
  }
}

std::string ChannelSender::next_id() {
  return prefix_ + std::to_string(counter_++);
}

Result<ChannelReceiver::Part> ChannelReceiver::read_part(std::string_view payload) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  Part part;
  std::string_view name;
  if (parser.parse(payload.data(), payload.size()).get(object) != simdjson::SUCCESS ||
      object["message"].get(name) != simdjson::SUCCESS ||
      object["offset"].get(part.offset) != simdjson::SUCCESS ||
      object["total"].get(part.total) != simdjson::SUCCESS) {
    return broken(
        "the payload of a biz.functionrpc message is neither {}, {many} nor {message, offset, total}");
  }
  if (name.empty() || name.size() > limits::kIdBytesMax)
    return broken("the name of a FunctionRpc message in parts is empty or too long");
  part.message = name;
  return part;
}

Result<std::string_view> ChannelReceiver::take_next(std::string_view& rest) const {
  constexpr std::size_t kLengthBytes = 4;
  if (rest.size() < kLengthBytes) return broken("FunctionRpc messages that go together are not whole");
  const std::uint64_t bytes = big_endian(rest.substr(0, kLengthBytes));
  rest.remove_prefix(kLengthBytes);
  if (bytes > rest.size()) return broken("FunctionRpc messages that go together are not whole");
  if (bytes > limits_.message_bytes_max) return broken("a FunctionRpc message is over the limit");
  const std::string_view next = rest.substr(0, static_cast<std::size_t>(bytes));
  rest.remove_prefix(next.size());
  return next;
}

Result<std::optional<std::string_view>> ChannelReceiver::take_one(const Message& message,
                                                                  std::string& complete) {
  const std::optional<Attachment> attachment = message.attachment();
  if (!attachment) return broken("a biz.functionrpc message has no attachment");
  const std::string_view bytes = attachment->bytes;
  if (message.payload() == kWhole) {
    if (bytes.size() > limits_.message_bytes_max) return broken("a FunctionRpc message is over the limit");
    return std::optional{bytes};
  }
  Result<Part> read = read_part(message.payload());
  if (!read) return read.error();
  const Part& part = *read;
  auto partial = partial_.find(part.message);
  if (partial == partial_.end()) {
    if (part.offset != 0) return broken("the first part of a FunctionRpc message is missing");
    if (part.total > limits_.message_bytes_max) {
      return broken("a FunctionRpc message of " + std::to_string(part.total) +
                    " bytes is over the limit of " + std::to_string(limits_.message_bytes_max));
    }
    if (partial_bytes_ + part.total > limits_.partial_bytes_max ||
        partial_.size() >= limits_.partial_messages_max)
      return broken("too many FunctionRpc messages in parts at once");
    partial_bytes_ += static_cast<std::size_t>(part.total);
    partial = partial_.emplace(part.message, Partial{static_cast<std::size_t>(part.total), {}}).first;
  }
  Partial& so_far = partial->second;
  if (part.total != so_far.total || part.offset != so_far.bytes.size() || bytes.empty() ||
      bytes.size() > so_far.total - so_far.bytes.size()) {
    return broken("the parts of a FunctionRpc message do not fit together");
  }
  so_far.bytes.append(bytes);
  held_bytes_ += bytes.size();
  if (so_far.bytes.size() < so_far.total) return std::optional<std::string_view>{};
  held_bytes_ -= so_far.total;
  complete = std::move(so_far.bytes);
  partial_bytes_ -= so_far.total;
  partial_.erase(partial);
  return std::optional<std::string_view>{complete};
}

void ChannelReceiver::drop_unfinished() {
  partial_.clear();
  partial_bytes_ = held_bytes_ = 0;
}

}  // namespace windlass::function_rpc
