// Everything on disk before anybody is told: our scheduler with its SQLite store and group commit, beside
// JetStream on files and Redis with a log, each of which writes through to the disk. A table without bars:
// disks differ more than programs.
#include <filesystem>

#include "protocol/base/check.h"
#include "tests/bench/neighbours.h"
#include "tests/bench/scheduler_under_test.h"
#include "tests/bench/session_protocol.h"
#include "tests/bench/wss_sections.h"

namespace windlass::bench {
namespace {

// Commands by REST, each stored before it is answered. One connection handles one request at a time.
class SubmitProtocol final : public LoadProtocol {
 public:
  explicit SubmitProtocol(std::size_t number) {
    const std::string body = R"({"type":"biz.echo","payload":{"text":")" + std::string(470, 'x') + R"("}})";
    request_ = "POST /v1/workers/acme/w" + std::to_string(number) +
               "/commands HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
               SchedulerUnderTest::kAdminToken +
               "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + body;
  }
  void begin(Bytes& /*out*/) override { ready_ = true; }
  bool is_ready() const override { return ready_; }
  void append_messages(std::size_t count, Bytes& out) override {
    for (std::size_t i = 0; i < count; ++i) out += request_;
  }
  std::size_t receive(std::string_view bytes, Bytes& /*out*/) override {
    rest_ += bytes;
    std::size_t answers = 0;
    for (;;) {
      const std::size_t head = rest_.find("\r\n\r\n");
      if (head == Bytes::npos) return answers;
      if (!rest_.starts_with("HTTP/1.1 2")) stop_bench("the scheduler refused a command: " + rest_);
      constexpr std::string_view kLength = "Content-Length: ";
      const std::size_t at = rest_.find(kLength);
      CHECK(at < head);
      const std::size_t end =
          head + 4 + static_cast<std::size_t>(std::atoi(rest_.c_str() + at + kLength.size()));
      if (rest_.size() < end) return answers;
      rest_.erase(0, end);
      ++answers;
    }
  }

 private:
  Bytes request_;
  Bytes rest_;
  bool ready_ = false;
};

// A load on a scheduler whose store is a file on the same disk as the neighbours'.
class DurableScheduler final : public Contender {
 public:
  enum class Path : std::uint8_t { Inbox, Outbox };

  DurableScheduler(Identity& identity, const NeighbourOptions& options, Path path)
      : path_(path),
        store_(options.folder + (path == Path::Inbox ? "/inbox.db" : "/outbox.db")),
        scheduler_(identity, fresh(store_)) {
    const auto worker = [path](std::size_t number) {
      SessionLoadOptions session;
      session.path = "/ws/worker";
      session.instance = "w" + std::to_string(number);
      session.token = SchedulerUnderTest::kToken;
      session.answer = SessionLoadOptions::Answer::Ack;
      session.completes_commands = path == Path::Outbox;
      return session_protocol(session);
    };
    workers_ = std::make_unique<LoadClient>(loop_, LoadOptions{.port = scheduler_.port(),
                                                               .tls = identity.client_tls.get(),
                                                               .connections = options.connections,
                                                               .protocol = worker});
    if (path == Path::Inbox) return;
    operators_ = std::make_unique<LoadClient>(
        loop_, LoadOptions{
                   .port = scheduler_.admin_port(),
                   .tls = identity.client_tls.get(),
                   .connections = options.connections / 2,  // the listener takes 64 and keeps some for people
                   .protocol = [](std::size_t number) { return std::make_unique<SubmitProtocol>(number); }});
  }
  ~DurableScheduler() override { fresh(store_); }
  std::string name() const override { return path_ == Path::Inbox ? "scheduler_inbox" : "scheduler_outbox"; }
  LoadSample run(std::size_t in_flight, Duration window) override {
    const double before = scheduler_.process().nanoseconds();
    const auto outcome = (operators_ ? *operators_ : *workers_).run(in_flight, window);
    return {outcome.per_second,
            (scheduler_.process().nanoseconds() - before) / static_cast<double>(outcome.messages)};
  }

 private:
  // Without what an earlier run left.
  static const std::string& fresh(const std::string& store) {
    for (const char* const suffix : {"", "-wal", "-shm", ".keys"}) std::filesystem::remove(store + suffix);
    return store;
  }

  Path path_;
  std::string store_;
  SchedulerUnderTest scheduler_;
  EventLoop loop_;
  std::unique_ptr<LoadClient> workers_;
  std::unique_ptr<LoadClient> operators_;
};

}  // namespace

void durable_table(Run& run, Identity& identity) {
  const NeighbourOptions options = neighbour_options(run, identity);
  DurableScheduler inbox{identity, options, DurableScheduler::Path::Inbox};
  DurableScheduler outbox{identity, options, DurableScheduler::Path::Outbox};
  const auto publish_ack = jetstream(options, Storage::File);
  const auto streams = redis_streams(options, Durability::Always);
  const std::vector<Contender*> all = {&inbox, &outbox, publish_ack.get(), streams.get()};
  const auto results = compete(run, all);
  for (std::size_t i = 2; i < all.size(); ++i) {
    std::printf("ratio durable inbox_vs_%s 64x32 %.3g 64x1 %.3g outbox 64x32 %.3g 64x1 %.3g\n",
                all[i]->name().c_str(), results[0].many.rate_over(results[i].many),
                results[0].one.rate_over(results[i].one), results[1].many.rate_over(results[i].many),
                results[1].one.rate_over(results[i].one));
  }
}

}  // namespace windlass::bench
