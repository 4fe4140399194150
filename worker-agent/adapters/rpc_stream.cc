#include "worker-agent/adapters/rpc_stream.h"

#include <algorithm>
#include <utility>

namespace windlass::agent {

RpcStream::RpcStream(Reader& reader, Writer& writer, RpcTag* read, RpcTag* written,
                     const RpcStreamBounds& bounds, std::function<void()> wake)
    : reader_(reader),
      writer_(writer),
      read_(read),
      written_(written),
      bounds_(bounds),
      wake_(std::move(wake)) {}

std::string RpcStream::text_of(const grpc::ByteBuffer& buffer) {
  std::string text;
  grpc::Slice single;
  if (buffer.TrySingleSlice(&single).ok()) {
    text.assign(reinterpret_cast<const char*>(single.begin()), single.size());
    return text;
  }
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

void RpcStream::start_reading() {
  const std::lock_guard lock{mutex_};
  if (is_reading_ || is_over_) return;
  is_reading_ = true;
  reader_.Read(&read_buffer_, read_);
}

void RpcStream::deliver(std::string message) {
  bool is_first = false;
  {
    const std::lock_guard lock{mutex_};
    is_first = inbound_.empty();
    inbound_bytes_ += message.size();
    inbound_.push_back(std::move(message));
  }
  if (is_first) wake_();
}

bool RpcStream::handle_read(bool ok) {
  std::string message;
  if (ok) {
    message = text_of(read_buffer_);
    read_buffer_.Clear();
  }
  bool is_first = false;
  bool is_quiet = false;
  {
    const std::lock_guard lock{mutex_};
    is_reading_ = false;
    if (ok) {
      is_first = inbound_.empty();
      inbound_bytes_ += message.size();
      inbound_.push_back(std::move(message));
      if (inbound_bytes_ < bounds_.inbound_bytes_max && !is_over_) {
        is_reading_ = true;
        reader_.Read(&read_buffer_, read_);
      }
    } else {
      is_first = true;  // that it is over is news
      is_over_ = true;
    }
    is_quiet = is_over_ && !is_reading_ && !is_writing_;
  }
  if (is_first) wake_();
  return is_quiet;
}

bool RpcStream::handle_written(bool ok) {
  bool is_over_now = false;
  bool is_quiet = false;
  bool has_room = false;
  {
    const std::lock_guard lock{mutex_};
    const bool was_full =
        outbound_bytes_ >= bounds_.outbound_bytes_max || outbound_.size() >= bounds_.outbound_messages_max;
    outbound_bytes_ -= outbound_.front().Length();
    outbound_.pop_front();
    is_writing_ = false;
    if (!ok || is_over_) {
      is_over_now = !std::exchange(is_over_, true);
      give_back();
    } else if (!outbound_.empty()) {
      write_next();
    }
    has_room = was_full && outbound_bytes_ < bounds_.outbound_bytes_max &&
               outbound_.size() < bounds_.outbound_messages_max;
    is_quiet = is_over_ && !is_reading_ && !is_writing_;
  }
  if (is_over_now || has_room) wake_();
  return is_quiet;
}

bool RpcStream::end() {
  const std::lock_guard lock{mutex_};
  is_over_ = true;
  return !is_reading_ && !is_writing_;
}

void RpcStream::write_next() {
  is_writing_ = true;
  grpc::WriteOptions options;
  // Another follows at once: they leave together.
  if (outbound_.size() > 1) options.set_buffer_hint();
  writer_.Write(outbound_.front(), options, written_);
}

void RpcStream::give_back() {
  for (const grpc::ByteBuffer& each : outbound_) unwritten_.push_back(text_of(each));
  outbound_.clear();
  outbound_bytes_ = 0;
}

std::vector<std::string> RpcStream::take_unwritten() {
  const std::lock_guard lock{mutex_};
  // The first may be on its way, and its buffer is in use.
  while (is_over_ && outbound_.size() > (is_writing_ ? 1U : 0U)) {
    unwritten_.push_back(text_of(outbound_.back()));
    outbound_bytes_ -= outbound_.back().Length();
    outbound_.pop_back();
  }
  return std::exchange(unwritten_, {});
}

void RpcStream::take(std::vector<std::string>& messages) {
  messages.clear();
  const std::lock_guard lock{mutex_};
  messages.swap(inbound_);
}

void RpcStream::consumed(std::size_t bytes) {
  const std::lock_guard lock{mutex_};
  inbound_bytes_ -= std::min(bytes, inbound_bytes_);
  if (is_reading_ || is_over_ || inbound_bytes_ >= bounds_.inbound_bytes_max) return;
  is_reading_ = true;
  reader_.Read(&read_buffer_, read_);
}

bool RpcStream::send(std::string_view message) {
  const grpc::Slice slice{message.data(), message.size()};
  const std::lock_guard lock{mutex_};
  if (is_over_) return false;
  outbound_.emplace_back(&slice, 1);
  outbound_bytes_ += message.size();
  return true;
}

void RpcStream::flush() {
  const std::lock_guard lock{mutex_};
  if (!is_over_ && !is_writing_ && !outbound_.empty()) write_next();
}

bool RpcStream::is_full() const {
  const std::lock_guard lock{mutex_};
  return outbound_bytes_ >= bounds_.outbound_bytes_max || outbound_.size() >= bounds_.outbound_messages_max;
}

bool RpcStream::is_over() const {
  const std::lock_guard lock{mutex_};
  return is_over_;
}

std::size_t RpcStream::waiting_messages() const {
  const std::lock_guard lock{mutex_};
  return outbound_.size();
}

}  // namespace windlass::agent
