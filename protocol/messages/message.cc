#include "protocol/messages/message.h"

namespace windlass {

Message::Message(const MessageParts& parts)
    : has_attachment_(parts.attachment.has_value()), ack_request_(parts.ack_request) {
  const Attachment attachment = parts.attachment.value_or(Attachment{});
  storage_.reserve(parts.type.size() + parts.id.size() + parts.corr.size() + parts.payload.size() +
                   attachment.type.size() + attachment.bytes.size());
  const auto append = [this](std::string_view text) {
    storage_.append(text);
    return static_cast<std::uint32_t>(storage_.size());
  };
  type_end_ = append(parts.type);
  id_end_ = append(parts.id);
  corr_end_ = append(parts.corr);
  payload_end_ = append(parts.payload);
  attachment_type_end_ = append(attachment.type);
  append(attachment.bytes);
}

std::optional<Attachment> Message::attachment() const {
  if (!has_attachment_) return std::nullopt;
  return Attachment{part(payload_end_, attachment_type_end_),
                    part(attachment_type_end_, static_cast<std::uint32_t>(storage_.size()))};
}

}  // namespace windlass
