#include "protocol/http/http_reader.h"

#include <gtest/gtest.h>

#include "protocol/base/limits.h"

namespace windlass {
namespace {

constexpr HttpReaderOptions kSmall{.head_bytes_max = 1024, .body_bytes_max = 4096, .keeps_headers = true};

struct Read {
  HttpReader reader{kSmall};
  Bytes input;

  // What stands after all of `bytes`, heads passed over.
  HttpReader::State feed(std::string_view bytes) {
    input += bytes;
    HttpReader::State state = reader.handle_bytes(input);
    while (state == HttpReader::State::Head) state = reader.handle_bytes(input);
    return state;
  }
};

std::uint16_t refusal_of(std::string_view bytes) {
  Read read;
  return read.feed(bytes) == HttpReader::State::Refused ? read.reader.problem().status : 0;
}

const std::string kChunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(HttpReader, ReadsAChunkedBodyInPieces) {
  Read read;
  const std::string text = kChunked + "3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX-After: 1\r\n\r\n";
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    ASSERT_EQ(read.feed(text.substr(i, 1)), HttpReader::State::More) << i;
  }
  ASSERT_EQ(read.feed(text.substr(text.size() - 1)), HttpReader::State::Complete);
  EXPECT_EQ(read.reader.take().body, "abcde");
}

TEST(HttpReader, RefusesAChunkLineWithoutEnd) {
  Read read;
  ASSERT_EQ(read.feed(kChunked), HttpReader::State::More);
  HttpReader::State state = read.feed("1;");
  for (int i = 0; i < 20 && state == HttpReader::State::More; ++i) state = read.feed(std::string(100, 'x'));
  EXPECT_EQ(state, HttpReader::State::Refused);
  EXPECT_EQ(read.reader.problem().status, 400);
}

TEST(HttpReader, RefusesTrailersWithoutEnd) {
  Read read;
  ASSERT_EQ(read.feed(kChunked + "0\r\n"), HttpReader::State::More);
  HttpReader::State state = HttpReader::State::More;
  for (int i = 0; i < 200 && state == HttpReader::State::More; ++i) state = read.feed("X-A: 12345\r\n");
  EXPECT_EQ(state, HttpReader::State::Refused);
  EXPECT_EQ(read.reader.problem().status, 400);
}

// Whoever stands before us might have read it otherwise, and taken its body for the next request.
TEST(HttpReader, RefusesATransferEncodingThatIsNotChunkedAlone) {
  const std::string first = "POST / HTTP/1.1\r\nHost: x\r\n";
  for (const std::string each :
       {"Transfer-Encoding: identity\r\n", "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: \r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"}) {
    EXPECT_EQ(refusal_of(first + each + "\r\n"), 400) << each;
  }
  EXPECT_EQ(refusal_of(first + "Transfer-Encoding: Chunked\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400)
      << "1.0 knows no chunks";
}

TEST(HttpReader, TakesALengthThatIsSaidOnce) {
  const std::string first = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(refusal_of(first + "Content-Length: 3, 3\r\n\r\nabc"), 400);
  EXPECT_EQ(refusal_of(first + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), 400);
  EXPECT_EQ(refusal_of(first + "Content-Length: 3\r\n\r\nabc"), 0);
}

TEST(HttpReader, WantsExactlyOneHost) {
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 0);
}

TEST(HttpReader, TakesNoTrailerForAHeader) {
  Read read;
  ASSERT_EQ(read.feed(kChunked + "0\r\nHost: other\r\nX-Functions-Key: k\r\n\r\n"),
            HttpReader::State::Complete);
  const HttpRequest request = read.reader.take();
  ASSERT_EQ(request.headers.size(), 2U);
  EXPECT_EQ(request.headers[0].second, "x");
  EXPECT_EQ(request.headers[1].second, "chunked");
}

TEST(HttpReader, BoundsTheNumberOfHeadersAndTheTarget) {
  const auto state_of = [&](Bytes input) {
    HttpReader fresh{{.head_bytes_max = 64 * 1024, .keeps_headers = true}};
    const HttpReader::State state = fresh.handle_bytes(input);
    return state == HttpReader::State::Refused ? int{fresh.problem().status} : 0;
  };
  const auto with_headers = [](std::size_t count) {
    Bytes text = "GET / HTTP/1.1\r\nHost: x\r\n";
    for (std::size_t i = 1; i < count; ++i) text += "a" + std::to_string(i) + ":\r\n";
    return text + "\r\n";
  };
  EXPECT_EQ(state_of(with_headers(limits::kHttpHeadersMax)), 0);
  EXPECT_EQ(state_of(with_headers(limits::kHttpHeadersMax + 1)), 431);
  const auto with_bytes = [](std::size_t size) {
    Bytes text = "GET / HTTP/1.1\r\nHost: x\r\n";
    for (int i = 0; i < 100; ++i) text += "a" + std::to_string(i) + ": " + Bytes(600, 'b') + "\r\n";
    return text + "last: " + Bytes(size - text.size() - 10, 'c') + "\r\n\r\n";
  };
  EXPECT_EQ(state_of(with_bytes(64 * 1024)), 0);
  EXPECT_EQ(state_of(with_bytes(64 * 1024 + 1)), 431);
  EXPECT_EQ(state_of(with_bytes(68 * 1024)), 431) << "its lines are short";
  const auto with_target = [](std::size_t size) {
    return "GET /" + Bytes(size - 1, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n";
  };
  EXPECT_EQ(state_of(with_target(limits::kHttpTargetBytesMax)), 0);
  EXPECT_EQ(state_of(with_target(limits::kHttpTargetBytesMax + 1)), 414);
}

TEST(HttpReader, RefusesALineThatGoesOnInTheNext) {
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n\tfolded\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: x\r\nX-A:  1 \r\n\r\n"), 0);
}

TEST(HttpReader, BoundsTheExtensionsOfAChunk) {
  Read read;
  EXPECT_EQ(read.feed(kChunked + "1;a=b\r\nx\r\n"), HttpReader::State::More);
  EXPECT_EQ(read.feed("1;" + std::string(300, 'e') + "\r\nx\r\n"), HttpReader::State::Refused);
}

TEST(HttpReader, RefusesABodyThatSaysItIsTooLarge) {
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4097\r\n\r\n"), 413);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4096\r\n\r\n"), 0);
}

HttpRequest request_of(std::string_view target, std::string_view headers = "Host: other\r\n") {
  Read read;
  const std::string text = "GET " + std::string{target} + " HTTP/1.1\r\n" + std::string{headers} + "\r\n";
  EXPECT_EQ(read.feed(text), HttpReader::State::Complete) << target;
  return read.reader.take();
}

std::string host_of(const HttpRequest& request) {
  std::string hosts;
  for (const auto& [name, value] : request.headers) hosts += name == "Host" ? value + ";" : "";
  return hosts;
}

TEST(HttpReader, TakesTheHostThatATargetNames) {
  const HttpRequest named = request_of("HTTP://Shop.example:81/api/x?a=1");
  EXPECT_EQ(named.target, "/api/x?a=1");
  EXPECT_EQ(host_of(named), "Shop.example:81;");
  EXPECT_EQ(request_of("https://shop.example").target, "/");
  EXPECT_EQ(request_of("http://shop.example?a").target, "/?a");
  const HttpRequest plain = request_of("/http://shop.example");
  EXPECT_EQ(plain.target, "/http://shop.example");
  EXPECT_EQ(host_of(plain), "other;");
  EXPECT_EQ(refusal_of("GET http:///x HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET http://me@x/x HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET http://x/x HTTP/1.1\r\n\r\n"), 400) << "the header is there all the same";
}

}  // namespace
}  // namespace windlass
