// NATS as a neighbour: request/reply between connections, and JetStream's acknowledged publish.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <thread>

#include "protocol/base/check.h"
#include "tests/bench/neighbour_load.h"
#include "tests/bench/neighbours.h"

namespace windlass::bench {
namespace {

// Connections of all responders together: the fewer they are, the more of their traffic the server can batch.
constexpr std::size_t kResponders = 4;
constexpr std::string_view kConnect =
    "CONNECT "
    "{\"verbose\":false,\"pedantic\":false,\"tls_required\":true,\"lang\":\"bench\",\"version\":\"1\","
    "\"protocol\":1,\"headers\":true,\"no_responders\":true}\r\n";

std::string two_digits(std::size_t number) {
  return {static_cast<char>('0' + number / 10 % 10), static_cast<char>('0' + number % 10)};
}

std::string publish_text(const std::string& subject, const std::string& reply_to, BytesView body) {
  return "PUB " + subject + ' ' + reply_to + (reply_to.empty() ? "" : " ") + std::to_string(body.size()) +
         "\r\n" + std::string{body} + "\r\n";
}

struct NatsMessage {
  BytesView head;  // "MSG <subject> <subscription> [reply-to] <bytes>"
  BytesView body;
};

// Reads what a server says, as far as a client that only counts must.
class NatsReader final {
 public:
  // Calls `on_message` for each; the server's PING is answered in `out`, its errors end the bench.
  template <class OnMessage>
  void read(BytesView input, Bytes& out, OnMessage on_message) {
    BytesView rest = unread_.with(input);
    for (std::size_t end = rest.find('\n'); end != BytesView::npos; end = rest.find('\n')) {
      const BytesView head = rest.substr(0, end - 1);
      std::size_t used = end + 1;
      if (head.starts_with("MSG ")) {
        const std::size_t bytes = body_bytes(head);
        if (rest.size() < used + bytes + 2) break;
        on_message(NatsMessage{head, rest.substr(used, bytes)});
        used += bytes + 2;
      } else if (head == "PONG") {
        has_pong_ = true;
      } else if (head == "PING") {
        out += "PONG\r\n";
      } else if (!head.starts_with("INFO ")) {  // -ERR, or HMSG: nobody answers the subject
        stop_bench("nats-server said: " + std::string{head});
      }
      rest.remove_prefix(used);
    }
    unread_.keep(rest);
  }
  bool has_pong() const { return has_pong_; }

 private:
  static std::size_t body_bytes(BytesView head) {
    std::size_t bytes = 0;
    const char* const first = head.data() + head.rfind(' ') + 1;
    const char* const last = head.data() + head.size();
    CHECK(std::from_chars(first, last, bytes).ptr == last);
    return bytes;
  }

  Unread unread_;
  bool has_pong_ = false;
};

// Publishes to one subject, with a reply to an inbox of its own. Real clients name a new inbox for each
// request; using 32 over and over spares the server misses of its routing cache.
class NatsPublisher final : public LoadProtocol {
 public:
  struct Options {
    std::string subject;
    std::string inbox;
    std::string setup = {};        // asked for after the subscription; its answer opens the dialogue
    std::string reply_begin = {};  // of every reply
    std::size_t body_bytes = 0;    // of every publish
    std::size_t reply_bytes = 0;   // of every reply; none: they differ
  };
  explicit NatsPublisher(Options options) : options_(std::move(options)) {
    const Bytes body(options_.body_bytes, 'x');
    for (std::size_t i = 0; i < kManyInFlight; ++i) {
      rendered_ += publish_text(options_.subject, options_.inbox + '.' + two_digits(i), body);
    }
  }

  void begin(Bytes& out) override {
    out += kConnect;
    out += "SUB " + options_.inbox + ".* 1\r\n";
    out += options_.setup.empty() ? "PING\r\n" : options_.setup;
  }
  bool is_ready() const override { return is_set_up_ || reader_.has_pong(); }

  void append_messages(std::size_t operations, Bytes& out) override {
    const std::size_t each = rendered_.size() / kManyInFlight;
    while (operations > 0) {
      const std::size_t count = std::min(operations, kManyInFlight - next_);
      out.append(rendered_, next_ * each, count * each);
      next_ = (next_ + count) % kManyInFlight;
      operations -= count;
    }
  }

  std::size_t receive(BytesView input, Bytes& out) override {
    std::size_t finished = 0;
    reader_.read(input, out, [this, &finished](const NatsMessage& message) {
      if (!is_ready()) {
        if (message.body.find("\"error\"") != BytesView::npos) fail(message);
        is_set_up_ = true;
        return;
      }
      const bool right = message.body.starts_with(options_.reply_begin) &&
                         (options_.reply_bytes == 0 || message.body.size() == options_.reply_bytes);
      if (!right) fail(message);
      ++finished;
    });
    return finished;
  }

 private:
  [[noreturn]] static void fail(const NatsMessage& message) {
    stop_bench("nats-server answered: " + std::string{message.body});
  }

  Options options_;
  Bytes rendered_;  // all publishes, one after the other
  NatsReader reader_;
  std::size_t next_ = 0;
  bool is_set_up_ = false;
};

class NatsResponder final : public LoadProtocol {
 public:
  NatsResponder(std::string subject, std::size_t body_bytes)
      : subject_(std::move(subject)),
        rest_(' ' + std::to_string(body_bytes) + "\r\n" + Bytes(body_bytes, 'y') + "\r\n") {}

  void begin(Bytes& out) override {
    out += kConnect;
    out += "SUB " + subject_ + " 1\r\nPING\r\n";
  }
  bool is_ready() const override { return reader_.has_pong(); }
  void append_messages(std::size_t /*operations*/, Bytes& /*out*/) override { CHECK(false); }

  std::size_t receive(BytesView input, Bytes& out) override {
    reader_.read(input, out, [this, &out](const NatsMessage& message) {
      const std::size_t end = message.head.rfind(' ');
      const std::size_t start = message.head.rfind(' ', end - 1) + 1;
      out += "PUB ";
      out += message.head.substr(start, end - start);
      out += rest_;
    });
    return 0;
  }

 private:
  std::string subject_;
  Bytes rest_;  // of a reply, after the inbox
  NatsReader reader_;
};

// The sum of all numbers of a name in JSON, which the monitoring pages indent with one member in a line.
std::uint64_t sum_of(BytesView json, BytesView name) {
  const std::string quoted = '"' + std::string{name} + "\": ";
  std::uint64_t sum = 0;
  for (std::size_t at = json.find(quoted); at != BytesView::npos; at = json.find(quoted, at)) {
    at += quoted.size();
    std::uint64_t number = 0;
    std::from_chars(json.data() + at, json.data() + json.size(), number);
    sum += number;
  }
  return sum;
}

std::string nats_configuration(const NeighbourOptions& options, const NeighbourServer::Place& place) {
  // One memory and one file limit for all streams, which are bounded far below by their own.
  return "listen: \"127.0.0.1:" + std::to_string(place.port) +
         "\"\nhttp: \"127.0.0.1:" + std::to_string(place.second_port) + "\"\ntls { cert_file: \"" +
         options.certificate_file + "\", key_file: \"" + options.key_file +
         "\" }\njetstream { store_dir: \"" + place.folder +
         "/store\", max_memory_store: 1073741824, max_file_store: 4294967296 }\n";
}

// A server and the connections to it.
class NatsHost final {
 public:
  NatsHost(const NeighbourOptions& options, const std::function<void(const std::string&)>& prepare)
      : server_({"nats-server", "nats-server"}, {"-c"}, options.folder,
                [&options, &prepare](const NeighbourServer::Place& place) {
                  prepare(place.folder);
                  return nats_configuration(options, place);
                }),
        tls_(neighbour_tls(options.authority_file)),
        load_(server_, *tls_, Greeting::Line) {}

  NeighbourLoad& load() { return load_; }

  // `number` on a monitoring page is `wanted`. The server adds to its numbers after it has sent what they
  // count, so they may need a moment.
  void expect(const std::string& page, BytesView number, std::uint64_t wanted) const {
    std::uint64_t said = 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
      said = sum_of(http_body(server_.place().second_port, page), number);
      if (said == wanted) return;
      std::this_thread::sleep_for(milliseconds{10});
    }
    stop_bench("nats-server says " + std::to_string(said) + " where " + std::to_string(wanted) +
               " were counted: " + page);
  }

 private:
  NeighbourServer server_;
  std::unique_ptr<TlsContext> tls_;
  NeighbourLoad load_;
};

class NatsRequestReply final : public Contender {
 public:
  explicit NatsRequestReply(const NeighbourOptions& options) : host_(options, [](const std::string&) {}) {
    for (std::size_t i = 0; i < kResponders; ++i) {
      host_.load().connect(std::make_unique<NatsResponder>(subject(i), options.body_bytes), Part::Answering);
    }
    for (std::size_t i = 0; i < options.connections; ++i) {
      host_.load().connect(
          std::make_unique<NatsPublisher>(NatsPublisher::Options{.subject = subject(i % kResponders),
                                                                 .inbox = "_INBOX." + two_digits(i),
                                                                 .reply_begin = "yyyy",
                                                                 .body_bytes = options.body_bytes,
                                                                 .reply_bytes = options.body_bytes}),
          Part::Loaded);
    }
    host_.load().open();
  }
  // A request and a reply came in for each operation.
  ~NatsRequestReply() override { host_.expect("/varz", "in_msgs", 2 * host_.load().operations()); }
  std::string name() const override { return "nats_request_reply"; }
  LoadSample run(std::size_t in_flight, Duration window) override {
    return host_.load().run(in_flight, window);
  }

 private:
  static std::string subject(std::size_t responder) { return "service." + two_digits(responder); }

  NatsHost host_;
};

// A stream for each connection, as each of our sessions has its own order: one stream for all would make the
// publishers wait for one another.
class JetStream final : public Contender {
 public:
  JetStream(const NeighbourOptions& options, Storage storage)
      : storage_(storage), host_(options, [this](const std::string& folder) { prepare(folder); }) {
    for (std::size_t i = 0; i < options.connections; ++i) {
      const std::string inbox = "_INBOX." + two_digits(i);
      host_.load().connect(
          std::make_unique<NatsPublisher>(NatsPublisher::Options{.subject = "subject." + two_digits(i),
                                                                 .inbox = inbox,
                                                                 .setup = create(i, inbox + ".setup"),
                                                                 .reply_begin = "{\"stream\":",
                                                                 .body_bytes = options.body_bytes}),
          Part::Loaded);
    }
    host_.load().open();
  }
  ~JetStream() override {
    host_.expect("/jsz?accts=true&streams=true", "last_seq", host_.load().operations());
  }
  std::string name() const override {
    if (storage_ == Storage::Memory) return "jetstream_memory";
    return is_written_through_ ? "jetstream_file_written_through" : "jetstream_file_NOT_SYNCED";
  }
  LoadSample run(std::size_t in_flight, Duration window) override {
    return host_.load().run(in_flight, window);
  }

 private:
  // Version 2.9 has no setting to sync each message (its sync_interval, with "always", came with 2.10;
  // before, files are synced every two minutes). It writes each message with one system call before it
  // acknowledges it, so a folder whose files are written through by every write gives the same promise.
  void prepare(const std::string& folder) {
    if (storage_ == Storage::Memory) return;
    std::filesystem::create_directories(folder + "/store");
    is_written_through_ = write_through(folder + "/store");
  }
  std::string create(std::size_t stream, const std::string& reply_to) const {
    const std::string name = "stream" + two_digits(stream);
    return publish_text("$JS.API.STREAM.CREATE." + name, reply_to,
                        "{\"name\":\"" + name + "\",\"subjects\":[\"subject." + two_digits(stream) +
                            "\"],\"storage\":\"" + (storage_ == Storage::Memory ? "memory" : "file") +
                            "\",\"retention\":\"limits\",\"discard\":\"old\",\"max_msgs\":1000,"
                            "\"max_consumers\":-1,\"num_replicas\":1}");
  }

  Storage storage_;
  bool is_written_through_ = false;
  NatsHost host_;
};

}  // namespace

std::unique_ptr<Contender> nats_request_reply(const NeighbourOptions& options) {
  return std::make_unique<NatsRequestReply>(options);
}

std::unique_ptr<Contender> jetstream(const NeighbourOptions& options, Storage storage) {
  return std::make_unique<JetStream>(options, storage);
}

}  // namespace windlass::bench
