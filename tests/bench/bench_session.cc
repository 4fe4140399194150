// The session core, both ends in memory: cost per frame against decoding one, how that cost depends on the
// window, and what an idle session keeps.
//
//   bench_session                      times, instructions (callgrind) and memory
//   bench_session --smoke              shows only that it works
//   bench_session --frames N WINDOW    carries N frames and ends: what the benchmark runs under callgrind
#include <malloc.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/check.h"
#include "protocol/codec/decode.h"
#include "protocol/session/session.h"
#include "tests/bench/bar.h"
#include "tests/support/session_pair.h"

namespace windlass {
namespace {

constexpr std::size_t kPayloadBytes =
    512 - 240;  // an envelope of this kind takes about 240 bytes of a 512-byte frame

std::string business_payload() {
  std::string payload = R"({"node":"transform","note":")";
  payload.append(kPayloadBytes - payload.size() - 2, 'n');
  return payload + "\"}";
}

std::string business_text(const std::string& payload) {
  std::string text =
      R"({"type":"biz.command.run","id":"01J9ZQ4X7M8N2P3R5T6V8W9YAB","ts":"2026-11-16T08:00:00.123Z",)"
      R"("tenant":"acme-production","sender":{"role":"scheduler","id":"scheduler-1"},"corr":"01J9ZQ4X7M8N2P3R5T6V8W9YAA",)"
      R"("seq":123456,"payload":)";
  return text + payload + "}";
}

// Two sessions that hand each other their frames. One direction carries data; acks flow back.
class Link {
 public:
  explicit Link(std::uint32_t window)
      : config_(with_window(window)),
        sender_(Side::Worker, identity(Role::Worker, Role::Scheduler), config_, 1),
        receiver_(Side::Scheduler, identity(Role::Scheduler, Role::Worker), config_, 2),
        payload_(business_payload()) {
    sender_.connect(config_.receive_credit, now_);
    receiver_.connect(config_.receive_credit, now_);
    pump();
  }

  // Sends `frames` as fast as credit allows; every one is delivered, owned and acknowledged.
  void carry(std::uint64_t frames) {
    while (frames > 0) {
      while (frames > 0) {
        const auto sent = sender_.send(
            Message{{.type = "biz.command.run", .id = "01J9ZQ4X7M8N2P3R5T6V8W9YAB", .payload = payload_}},
            now_);
        if (!sent) break;
        --frames;
      }
      pump();
    }
    receiver_.handle_idle();
    pump();
    CHECK(sender_.stream().send_window().empty());
  }

  std::uint64_t delivered() const { return delivered_; }

  // Lets more than a heartbeat pass, with every timer on its way.
  void idle() {
    for (int step = 0; step < 8; ++step) {
      now_.steady += seconds{5};
      now_.wall += seconds{5};
      sender_.handle_timeout(now_);
      receiver_.handle_timeout(now_);
      pump();
    }
  }

  std::size_t bytes_besides_sessions() const {
    return sizeof(Link) - 2 * sizeof(Session) + payload_.capacity();
  }

 private:
  static SessionConfig with_window(std::uint32_t window) {
    SessionConfig config;
    config.receive_credit = {window, limits::kSendBytesMax};
    config.frames_per_second_max = std::uint64_t{1} << 30U;
    return config;
  }

  static SessionIdentity identity(Role self, Role peer) {
    const auto id = [](Role role) {
      return role == Role::Worker ? "7f0c9a52-3f1e-4a57-9a1e-0c4d2f6b8e11" : "scheduler-1";
    };
    return {"s-1", "acme-production", self, id(self), peer, id(peer), Revision::Two};
  }

  void pump() {
    now_.steady += Duration{1000};
    for (bool moved = true; moved;) {
      moved = pass(sender_, receiver_);
      moved = pass(receiver_, sender_) || moved;
    }
  }

  bool pass(Session& from, Session& to) {
    bool moved = false;
    while (const auto frame = from.poll_transmit(now_)) {
      moved = true;
      to.handle_frame(*frame, now_);
      while (const auto event = to.poll_event()) {
        const auto* delivered = std::get_if<Delivered>(&*event);
        if (delivered == nullptr) continue;
        ++delivered_;
        to.own(delivered->seq + 1, now_);
      }
    }
    while (from.poll_event()) {
    }
    return moved;
  }

  SessionConfig config_;
  Now now_{Instant{seconds{1}}, WallTime{milliseconds{1'700'000'000'000}}};
  Session sender_;
  Session receiver_;
  std::string payload_;
  std::uint64_t delivered_ = 0;
};

// Instructions of one run of this program under callgrind, whatever else the machine does meanwhile.
std::optional<double> instructions(const char* self, std::uint64_t frames, std::uint32_t window) {
  const std::string command = std::string{"valgrind --tool=callgrind --callgrind-out-file=/dev/null "} +
                              self + " --frames " + std::to_string(frames) + " " + std::to_string(window) +
                              " 2>&1";
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return std::nullopt;
  std::optional<double> collected;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), output) != nullptr) {
    const char* const at = std::strstr(line.data(), "Collected : ");
    if (at != nullptr) collected = std::strtod(at + std::strlen("Collected : "), nullptr);
  }
  return pclose(output) == 0 ? collected : std::nullopt;
}

void measure_flatness(bench::Run& run, const char* self) {
  constexpr std::uint64_t kFrames = 16384;  // whole windows of every size
  double least = 0;
  double most = 0;
  for (const std::uint32_t window : {16U, 64U, 256U, 1024U, 4096U}) {
    const auto once = instructions(self, kFrames, window);
    const auto twice = instructions(self, 2 * kFrames, window);
    if (!once || !twice) {
      std::printf("valgrind is missing or failed; ./dev setup installs it\n");
      return run.bar("session_window_flat", 1e9, "<=", 1.3);
    }
    const double each = (*twice - *once) / static_cast<double>(kFrames);
    std::printf("instructions per frame, window %u: %.0f\n", window, each);
    least = least == 0 || each < least ? each : least;
    most = each > most ? each : most;
  }
  run.bar("session_window_flat", most / least, "<=", 1.3);
}

// Object and heap of one idle session, the mean of both sides: it carried traffic and then was idle past a
// heartbeat.
double idle_session_bytes(std::size_t count) {
  std::vector<std::unique_ptr<Link>> links(count);
  const std::size_t before = mallinfo2().uordblks;
  for (auto& link : links) {
    link = std::make_unique<Link>(256);
    link->carry(200);
    link->idle();
  }
  const auto used = static_cast<double>(mallinfo2().uordblks - before) / static_cast<double>(count);
  return (used - static_cast<double>(links.front()->bytes_besides_sessions())) / 2;
}

// All that a scheduler's endpoint keeps per idle session, its connection and the indexes included.
double idle_endpoint_bytes(std::size_t count) {
  SessionConfig config;
  testing::AdmitAll admission;
  TokenAuthority tokens = testing::test_tokens();
  SchedulerEndpoint scheduler({.scheduler_id = "sched"}, config, admission, tokens, 7);
  Now now{Instant{seconds{1}}, WallTime{milliseconds{1'700'000'000'000}}};

  const std::size_t before = mallinfo2().uordblks;
  // The workers live only as long as they are needed to open and use their sessions.
  std::vector<std::unique_ptr<WorkerEndpoint>> workers;
  for (std::size_t i = 0; i < count; ++i) {
    WorkerOptions options = testing::worker_options();
    options.instance_id = "instance-" + std::to_string(i);
    workers.push_back(std::make_unique<WorkerEndpoint>(options, config, i));
  }
  const auto exchange = [&](std::size_t i) {
    WorkerEndpoint& worker = *workers[i];
    for (bool moved = true; moved;) {
      moved = false;
      while (const auto frame = worker.poll_transmit(now)) {
        moved = true;
        scheduler.handle_frame(ConnectionId{i + 1}, *frame, now);
      }
      while (const auto out = scheduler.poll_transmit(now)) {
        moved = true;
        WorkerEndpoint& to = *workers[out->connection.value() - 1];
        to.handle_frame(to.connection(), out->frame, now);
      }
      while (const auto event = scheduler.poll_event()) {
        if (const auto* delivered = std::get_if<Delivered>(&event->event))
          scheduler.own(event->session, delivered->seq + 1, now);
      }
      while (const auto event = worker.poll_event()) {
        if (const auto* delivered = std::get_if<Delivered>(&event->event))
          worker.own(event->session, delivered->seq + 1, now);
      }
    }
  };
  for (std::size_t i = 0; i < count; ++i) {
    workers[i]->start(now);
    const auto dial = workers[i]->poll_dial(now);
    CHECK(dial.has_value());
    scheduler.handle_opened(ConnectionId{i + 1}, {}, now);
    workers[i]->handle_opened(*dial, now);
    exchange(i);
    CHECK(workers[i]->state() == SessionState::Ready);
    for (int frame = 0; frame < 200; ++frame) {
      const std::string id = std::to_string(frame);
      CHECK(workers[i]->send(testing::message(id), now));
      CHECK(scheduler.send(*scheduler.find("acme", workers[i]->session()->identity().self_id),
                           testing::message(id), now));
    }
    exchange(i);
  }
  // Idle past a heartbeat, which is when memory is given back.
  for (int step = 0; step < 7; ++step) {
    now.steady += seconds{5};
    now.wall += seconds{5};
    scheduler.handle_timeout(now);
    for (std::size_t i = 0; i < count; ++i) {
      workers[i]->handle_timeout(now);
      exchange(i);
    }
  }
  CHECK(scheduler.sessions() == count);
  workers.clear();
  const std::size_t after = mallinfo2().uordblks;
  return (static_cast<double>(after) - static_cast<double>(before)) / static_cast<double>(count);
}

}  // namespace
}  // namespace windlass

int main(int argc, char** argv) {
  using namespace windlass;
  if (argc == 4 && std::strcmp(argv[1], "--frames") == 0) {
    Link link{static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10))};
    link.carry(std::strtoull(argv[2], nullptr, 10));
    return link.delivered() == std::strtoull(argv[2], nullptr, 10) ? 0 : 1;
  }
  bench::Run run{argc, argv};
  constexpr std::uint64_t kBatch = 1024;
  Link link{256};
  const std::string text = business_text(business_payload());
  Decoder decoder;
  const auto [decoded, carried] = run.measure(
      bench::Case{"session_decode_biz_512",
                  [&] {
                    const Frame* frame = decoder.decode(text, MessageKind::Text, Expect::RevisionTwo);
                    CHECK(frame != nullptr);
                    bench::keep(frame);
                  }},
      bench::Case{"session_frame", [&] { link.carry(kBatch); }, kBatch});
  std::printf("the decoded text has %zu bytes\n", text.size());
  run.bar("session_vs_decode", carried.ratio_to(decoded), "<=", 1.0);
  if (!run.is_smoke()) measure_flatness(run, argv[0]);
  const std::size_t sessions = run.is_smoke() ? 10 : 1000;
  run.bar("session_idle_bytes", idle_session_bytes(sessions), "<=", 2048);
  std::printf(
      "bytes per idle session of a scheduler's endpoint, connection and indexes included: %.0f\n      ",
      idle_endpoint_bytes(sessions));
  return run.exit_code();
}
