// An HTTP client of plain sockets that shares no HTTP code with the listeners it talks to. Runs on the test's
// own thread, between turns of the listener's loop.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "protocol/adapters/socket.h"
#include "tests/support/loop_world.h"

namespace windlass::testing {

struct Answered {
  int status = 0;
  std::string head;  // lower case
  std::string body;
  bool has(std::string_view text) const { return body.find(text) != std::string::npos; }
  bool head_has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

// One connection that writes what it is told and takes answers from what came.
class RawClient final {
 public:
  RawClient(LoopRunner& runner, std::uint16_t port) : runner_(runner) {
    auto begun = begin_connect(*numeric_address("127.0.0.1", port));
    EXPECT_TRUE(begun.has_value());
    socket_ = std::move(*begun);
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      std::size_t sent = 0;
      const bool is_done = runner_.run_until([&] {
        const IoResult result = write_some(socket_.fd(), bytes);
        sent = result.bytes;
        return result.state != IoState::WouldBlock || result.bytes > 0;
      });
      if (!is_done || sent == 0) return;  // the listener closed; the answer tells why
      bytes.remove_prefix(sent);
    }
  }

  // The next answer; none when the connection ended instead.
  std::optional<Answered> receive(bool has_body = true) {
    std::optional<Answered> answered;
    EXPECT_TRUE(runner_.run_until([&] {
      read();
      answered = take(has_body);
      return answered.has_value() || has_ended_;
    })) << "neither an answer nor an end came";
    return answered;
  }

  bool ends() {
    return runner_.run_until([&] {
      read();
      return has_ended_;
    });
  }
  bool is_quiet() {
    read();
    return received_.empty() && !has_ended_;
  }
  // At most so much, for one that is slow; it is not kept.
  void read_slowly(std::size_t bytes) {
    std::string buffer(bytes, '\0');
    read_some(socket_.fd(), buffer);
  }
  void finish_sending() { finish_writing(socket_.fd()); }
  void reset() { socket_ = Socket{}; }

 private:
  void read() {
    std::array<char, 65536> buffer;
    for (;;) {
      const IoResult got = read_some(socket_.fd(), buffer);
      if (got.state == IoState::Done) {
        received_.append(buffer.data(), got.bytes);
        continue;
      }
      if (got.state != IoState::WouldBlock) has_ended_ = true;
      return;
    }
  }

  std::optional<Answered> take(bool has_body) {
    const std::size_t end = received_.find("\r\n\r\n");
    if (end == std::string::npos) return std::nullopt;
    Answered answered;
    answered.head = received_.substr(0, end + 2);
    std::ranges::transform(answered.head, answered.head.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    answered.status = std::stoi(answered.head.substr(9, 3));
    const std::size_t length_at = answered.head.find("content-length: ");
    std::size_t length =
        length_at == std::string::npos ? 0 : std::stoul(answered.head.substr(length_at + 16));
    if (!has_body) length = 0;
    if (received_.size() < end + 4 + length) return std::nullopt;
    answered.body = received_.substr(end + 4, length);
    received_.erase(0, end + 4 + length);
    return answered;
  }

  LoopRunner& runner_;
  Socket socket_;
  std::string received_;
  bool has_ended_ = false;
};

}  // namespace windlass::testing
