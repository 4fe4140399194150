// An owned business message: what an owner hands to a session and gets from one. All its parts lie in one
// allocation, so that moving it through a window costs nothing and freeing it costs once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/messages/frame.h"

namespace windlass {

struct MessageParts {
  std::string_view type;     // biz.* or ext.*
  std::string_view id;       // unique per sender, not starting with `~`, which marks the session's own frames
  std::string_view payload;  // JSON text of an object
  std::string_view corr{};   // the id of what this belongs to; empty: absent
  std::optional<Attachment> attachment{};
  bool ack_request = false;  // asks the peer's session for an ack at once
};

class Message {
 public:
  Message() = default;
  explicit Message(const MessageParts& parts);

  std::string_view type() const { return part(0, type_end_); }
  std::string_view id() const { return part(type_end_, id_end_); }
  std::string_view corr() const { return part(id_end_, corr_end_); }
  std::string_view payload() const { return part(corr_end_, payload_end_); }
  std::optional<Attachment> attachment() const;
  bool ack_request() const { return ack_request_; }
  Data data() const { return {type(), payload(), attachment()}; }
  std::uint64_t credit_bytes() const { return windlass::credit_bytes(data()); }

  friend bool operator==(const Message&, const Message&) = default;

 private:
  std::string_view part(std::uint32_t from, std::uint32_t to) const {
    return std::string_view{storage_}.substr(from, to - from);
  }

  std::string storage_;  // type, id, corr, payload, attachment type, attachment bytes
  std::uint32_t type_end_ = 0;
  std::uint32_t id_end_ = 0;
  std::uint32_t corr_end_ = 0;
  std::uint32_t payload_end_ = 0;
  std::uint32_t attachment_type_end_ = 0;
  bool has_attachment_ = false;
  bool ack_request_ = false;
};

}  // namespace windlass
