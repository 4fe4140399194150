#include "protocol/adapters/socket_stream.h"

#include <algorithm>
#include <utility>

#include "protocol/adapters/loop_buffers.h"
#include "protocol/base/check.h"
#include "protocol/base/limits.h"

namespace windlass {

SocketStream::SocketStream(EventLoop& loop, Parts parts, ReadinessEvents& events)
    : loop_(loop),
      readiness_(loop, std::move(parts.socket), events),
      tls_(std::move(parts.tls)),
      unsent_(std::move(parts.unsent)) {}

SocketStream::Input SocketStream::read() {
  LoopBuffers& buffers = loop_.buffers();
  const std::span<char> into = tls_ ? buffers.received() : buffers.plain().first(limits::kReadBytesMax);
  const IoResult got = read_some(readiness_.fd(), into);
  switch (got.state) {
    case IoState::WouldBlock:
      return {ReadState::Drained, {}};
    case IoState::Ended:
      return {ReadState::Ended, {}};
    case IoState::Failed:
      return fail(error_text(got.error));
    case IoState::Done:
      break;
  }
  const ReadState drained = got.bytes < into.size() ? ReadState::Drained : ReadState::More;
  if (!tls_) return {drained, into.first(got.bytes)};
  if (has_tls_failed()) return {drained, {}};  // read only to be thrown away

  Bytes& reply = buffers.sealed();
  reply.clear();
  const auto opened = tls_->open(into.first(got.bytes), buffers.plain(), reply);
  const std::span<char> plain = buffers.plain().first(opened.bytes);
  if (!reply.empty() && send_sealed(reply) == WriteState::Blocked) readiness_.wait_writable();
  switch (opened.state) {
    case TlsPump::State::Failed:
      failure_ = tls_->failure();
      return {ReadState::Failed, plain};
    case TlsPump::State::Ended:
      return {ReadState::Ended, plain};
    case TlsPump::State::More:
      break;
  }
  return {drained, plain};
}

void SocketStream::begin_tls() {
  CHECK(tls_ != nullptr);
  Bytes& reply = loop_.buffers().sealed();
  reply.clear();
  static_cast<void>(tls_->begin(reply));
  if (send_sealed(reply) == WriteState::Blocked) readiness_.wait_writable();
}

SocketStream::Output SocketStream::write(BytesView plain) {
  Output output;
  if (!send_unsent()) return {WriteState::Failed, 0};
  while (unsent_.empty() && output.bytes < plain.size()) {
    const BytesView part = plain.substr(output.bytes, limits::kSealBytesMax);
    if (tls_) {
      Bytes& sealed = loop_.buffers().sealed();
      sealed.clear();
      if (!tls_->seal(part, sealed)) {
        failure_ = tls_->failure();
        return {WriteState::Failed, output.bytes};
      }
      output.bytes += part.size();
      output.state = send_sealed(sealed);
    } else {
      const IoResult sent = write_some(readiness_.fd(), part);
      output.bytes += sent.bytes;
      if (sent.state == IoState::Failed) {
        failure_ = error_text(sent.error);
        return {WriteState::Failed, output.bytes};
      }
      output.state = sent.bytes < part.size() ? WriteState::Blocked : WriteState::Done;
    }
    if (output.state != WriteState::Done) return output;
  }
  if (!unsent_.empty()) output.state = WriteState::Blocked;
  return output;
}

void SocketStream::finish() {
  if (tls_) {
    Bytes& sealed = loop_.buffers().sealed();
    sealed.clear();
    tls_->finish(sealed);
    static_cast<void>(send_sealed(sealed));
  }
  finish_writing(readiness_.fd());
}

SocketStream::Parts SocketStream::release() {
  unsent_.erase(0, unsent_used_);
  return {readiness_.release(), std::move(tls_), std::move(unsent_)};
}

// False after a failure. Afterwards unsent_ is empty, or the socket is full.
bool SocketStream::send_unsent() {
  if (unsent_.empty()) return true;
  const IoResult sent = write_some(readiness_.fd(), BytesView{unsent_}.substr(unsent_used_));
  unsent_used_ += sent.bytes;
  if (sent.state == IoState::Failed) {
    failure_ = error_text(sent.error);
    return false;
  }
  if (unsent_used_ == unsent_.size()) {
    Bytes{}.swap(unsent_);
    unsent_used_ = 0;
  }
  return true;
}

SocketStream::WriteState SocketStream::send_sealed(Bytes& sealed) {
  std::size_t taken = 0;
  if (sealed.empty()) return WriteState::Done;
  if (unsent_.empty()) {
    const IoResult sent = write_some(readiness_.fd(), sealed);
    if (sent.state == IoState::Failed) {
      failure_ = error_text(sent.error);
      return WriteState::Failed;
    }
    taken = sent.bytes;
  }
  if (taken == sealed.size() && unsent_.empty()) return WriteState::Done;
  unsent_.append(sealed, taken);
  return WriteState::Blocked;
}

SocketStream::Input SocketStream::fail(std::string why) {
  failure_ = std::move(why);
  return {ReadState::Failed, {}};
}

}  // namespace windlass
