// Redis streams as a neighbour.
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "protocol/base/check.h"
#include "tests/bench/neighbour_load.h"
#include "tests/bench/neighbours.h"

namespace windlass::bench {
namespace {

std::string redis_key(std::size_t stream) {
  return "stream" + std::to_string(stream);
}

std::string redis_command(std::initializer_list<std::string_view> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    text += '$' + std::to_string(word.size()) + "\r\n" + std::string{word} + "\r\n";
  }
  return text;
}

// One element of a reply: '$' has its text, ':' its number, '*' the number of elements that follow.
struct RedisElement {
  char kind = 0;
  BytesView text;
  long number = 0;
};

// The next element of `rest`, taken from it; none if not all of it is there. An error reply ends the bench.
std::optional<RedisElement> next_element(BytesView& rest) {
  const std::size_t end = rest.find('\n');
  if (end == BytesView::npos) return std::nullopt;
  RedisElement element{rest.front(), rest.substr(1, end - 2), 0};
  if (element.kind == '-') stop_bench("redis-server said: " + std::string{element.text});
  std::size_t used = end + 1;
  if (element.kind != '+') {
    const char* const last = element.text.data() + element.text.size();
    CHECK(std::from_chars(element.text.data(), last, element.number).ptr == last);
  }
  if (element.kind == '$') {
    const bool is_null = element.number < 0;
    const std::size_t bytes = is_null ? 0 : static_cast<std::size_t>(element.number);
    if (!is_null && rest.size() < used + bytes + 2) return std::nullopt;
    element.text = rest.substr(used, bytes);
    used += is_null ? 0 : bytes + 2;
  }
  rest.remove_prefix(used);
  return element;
}

// Adds n messages to its own stream and reads them with one XREADGROUP in the same write, so the read finds
// them all. They are finished when they were read: their one XACK leaves in the same write as the next adds,
// as a good consumer would have it, and is checked when its answer comes.
class RedisStreams final : public LoadProtocol {
 public:
  RedisStreams(std::string key, std::size_t body_bytes) : key_(std::move(key)), body_bytes_(body_bytes) {
    // Trimmed by whole nodes of 100 entries, which costs almost nothing.
    const std::string add =
        redis_command({"XADD", key_, "MAXLEN", "~", "1000", "*", "b", std::string(body_bytes, 'x')});
    add_bytes_ = add.size();
    for (std::size_t i = 0; i < kManyInFlight; ++i) adds_ += add;
  }

  void begin(Bytes& out) override {
    out += redis_command({"XGROUP", "CREATE", key_, "group", "$", "MKSTREAM"});
  }
  bool is_ready() const override { return open_; }

  void append_messages(std::size_t operations, Bytes& out) override {
    CHECK(reading_ == 0);
    reading_ = operations;
    out.append(adds_, 0, operations * add_bytes_);
    out += redis_command(
        {"XREADGROUP", "GROUP", "group", "bench", "COUNT", std::to_string(operations), "STREAMS", key_, ">"});
  }

  std::size_t receive(BytesView input, Bytes& out) override {
    std::size_t finished = 0;
    BytesView rest = unread_.with(input);
    for (auto reply = next_element(rest); reply; reply = next_element(rest)) {
      if (elements_left_ > 0) {
        take_read(*reply);
        if (--elements_left_ == 0) finished += acknowledge(out);
        continue;
      }
      switch (reply->kind) {
        case '+':
          open_ = true;
          break;  // XGROUP
        case '$':
          expect(!reply->text.empty(), "XADD");
          break;
        case ':':
          expect(reply->number == std::exchange(acknowledging_, 0), "XACK");
          break;
        case '*':
          expect(reply->number == 1 && reading_ > 0, "XREADGROUP");
          // [key, [[id, [field, value]], ...]]
          elements_left_ = kReadHead + kEntry * reading_;
          break;
        default:
          expect(false, "a command");
      }
    }
    unread_.keep(rest);
    return finished;
  }

 private:
  // Elements of the answer to XREADGROUP: those before the first entry, and those of each.
  static constexpr std::size_t kReadHead = 3;
  static constexpr std::size_t kEntry = 5;

  void take_read(const RedisElement& element) {
    const std::size_t at = kReadHead + kEntry * reading_ - elements_left_;
    if (at == 2) expect(element.number == static_cast<long>(reading_), "XREADGROUP with all messages");
    if (at < kReadHead) return;
    const std::size_t in_entry = (at - kReadHead) % kEntry;
    if (in_entry == 1) {  // the id
      CHECK(element.kind == '$');
      ids_ += '$' + std::to_string(element.text.size()) + "\r\n";
      ids_ += element.text;
      ids_ += "\r\n";
    }
    if (in_entry == 4) expect(element.kind == '$' && element.text.size() == body_bytes_, "XREADGROUP");
  }

  std::size_t acknowledge(Bytes& out) {
    CHECK(acknowledging_ == 0);  // replies come in the order of the commands
    acknowledging_ = static_cast<long>(reading_);
    out += '*' + std::to_string(3 + reading_) + "\r\n$4\r\nXACK\r\n$" + std::to_string(key_.size()) + "\r\n" +
           key_ + "\r\n$5\r\ngroup\r\n";
    out += ids_;
    ids_.clear();
    return std::exchange(reading_, 0);
  }

  static void expect(bool right, const char* command) {
    if (!right) stop_bench(std::string{"redis-server answered something else to "} + command);
  }

  std::string key_;
  std::size_t body_bytes_;
  std::size_t add_bytes_ = 0;
  Bytes adds_;  // one XADD, as often as it may be sent at once
  Unread unread_;
  Bytes ids_;  // of the messages being read, as arguments of a command
  std::size_t reading_ = 0;
  std::size_t elements_left_ = 0;  // of the answer to XREADGROUP
  long acknowledging_ = 0;
  bool open_ = false;
};

// Asks what the server itself counted, over all streams.
class RedisQuestion final : public LoadProtocol {
 public:
  struct Answer {
    long added = 0;
    long pending = 0;  // read, not acknowledged
  };
  RedisQuestion(std::size_t streams, Answer& answer) : streams_(streams), answer_(answer) {}

  void begin(Bytes& out) override {
    for (std::size_t i = 0; i < streams_; ++i) {
      out += redis_command({"XINFO", "STREAM", redis_key(i)});
      out += redis_command({"XINFO", "GROUPS", redis_key(i)});
    }
    out += redis_command({"PING"});
  }
  bool is_ready() const override { return open_; }
  void append_messages(std::size_t /*operations*/, Bytes& /*out*/) override { CHECK(false); }

  // Replies are names, each followed by its value.
  std::size_t receive(BytesView input, Bytes& /*out*/) override {
    BytesView rest = unread_.with(input);
    for (auto element = next_element(rest); element; element = next_element(rest)) {
      if (element->kind == '+') open_ = true;  // PONG
      if (element->kind == ':' && name_ == "entries-added") answer_.added += element->number;
      if (element->kind == ':' && name_ == "pending") answer_.pending += element->number;
      name_ = element->text;
    }
    unread_.keep(rest);
    return 0;
  }

 private:
  std::size_t streams_;
  Answer& answer_;
  Unread unread_;
  std::string name_;
  bool open_ = false;
};

std::string redis_configuration(const NeighbourOptions& options, Durability durability,
                                const NeighbourServer::Place& place) {
  // The append-only file may grow as long as the run lasts: writing it anew would be work that the run's
  // length decides about.
  const std::string durable = durability == Durability::None
                                  ? "appendonly no\n"
                                  : "appendonly yes\nappendfsync always\nauto-aof-rewrite-percentage 0\n";
  return "bind 127.0.0.1\nport 0\ntls-port " + std::to_string(place.port) + "\ntls-cert-file " +
         options.certificate_file + "\ntls-key-file " + options.key_file + "\ntls-ca-cert-file " +
         options.authority_file +
         "\ntls-auth-clients no\ntls-protocols TLSv1.3\ndaemonize no\nsave \"\"\ndir " + place.folder + "\n" +
         durable;
}

// A stream and a consumer group for each connection, as each of our sessions has its own order.
class Redis final : public Contender {
 public:
  Redis(const NeighbourOptions& options, Durability durability)
      : durability_(durability),
        streams_(options.connections),
        server_({"redis-server", "redis-server"}, {}, options.folder,
                [&options, durability](const NeighbourServer::Place& place) {
                  return redis_configuration(options, durability, place);
                }),
        tls_(neighbour_tls(options.authority_file)),
        load_(server_, *tls_, Greeting::None) {
    for (std::size_t i = 0; i < streams_; ++i) {
      load_.connect(std::make_unique<RedisStreams>(redis_key(i), options.body_bytes), Part::Loaded);
    }
    load_.open();
  }
  ~Redis() override { compare_counts(); }
  std::string name() const override {
    return durability_ == Durability::None ? "redis_streams_memory" : "redis_streams_appendfsync_always";
  }
  LoadSample run(std::size_t in_flight, Duration window) override { return load_.run(in_flight, window); }

 private:
  // The last acknowledgements may still be on their way when the run ends.
  void compare_counts() {
    const auto wanted = static_cast<long>(load_.operations());
    RedisQuestion::Answer answer;
    for (int attempt = 0; attempt < 100; ++attempt) {
      answer = {};
      NeighbourLoad asking{server_, *tls_, Greeting::None};
      asking.connect(std::make_unique<RedisQuestion>(streams_, answer), Part::Answering);
      asking.open();
      if (answer.added == wanted && answer.pending == 0) return;
    }
    stop_bench("redis-server says " + std::to_string(answer.added) + " added, " +
               std::to_string(answer.pending) + " not acknowledged, where " + std::to_string(wanted) +
               " were counted");
  }

  Durability durability_;
  std::size_t streams_;
  NeighbourServer server_;
  std::unique_ptr<TlsContext> tls_;
  NeighbourLoad load_;
};

}  // namespace

std::unique_ptr<Contender> redis_streams(const NeighbourOptions& options, Durability durability) {
  return std::make_unique<Redis>(options, durability);
}

}  // namespace windlass::bench
