#include "tests/bench/wss_contest.h"

#include <pthread.h>

#include "protocol/base/check.h"

namespace windlass::bench {
namespace {

double nanoseconds_of(std::thread& thread) {
  clockid_t clock{};
  CHECK(::pthread_getcpuclockid(thread.native_handle(), &clock) == 0);
  timespec spent{};
  CHECK(::clock_gettime(clock, &spent) == 0);
  return static_cast<double>(spent.tv_sec) * 1e9 + static_cast<double>(spent.tv_nsec);
}

double median_ratio(const Samples& a, const Samples& b) {
  Samples ratios{};
  for (std::size_t i = 0; i < kRounds; ++i) ratios[i] = a[i] / b[i];
  return median(ratios);
}

}  // namespace

Contest::Contest(std::string name, std::unique_ptr<EchoServer> server, const TlsContext& client_tls,
                 std::function<std::unique_ptr<LoadProtocol>(std::size_t)> protocol)
    : name_(std::move(name)), server_(std::move(server)), thread_([this] { server_->run(); }) {
  client_ = std::make_unique<LoadClient>(
      loop_, LoadOptions{.port = server_->port(), .tls = &client_tls, .protocol = std::move(protocol)});
}

Contest::~Contest() {
  server_->stop();
  thread_.join();
}

LoadSample Contest::run(std::size_t in_flight, Duration window) {
  const double before = nanoseconds_of(thread_);
  const LoadClient::Outcome outcome = client_->run(in_flight, window);
  return {outcome.per_second, (nanoseconds_of(thread_) - before) / static_cast<double>(outcome.messages)};
}

std::vector<double> Contest::run_paced(double per_second, Duration window) {
  return client_->run_paced(per_second, window);
}

void Shape::add(std::size_t round, const LoadSample& sample) {
  rate[round] = sample.rate;
  nanoseconds[round] = sample.server_nanoseconds;
}

double Shape::rate_over(const Shape& other) const {
  return median_ratio(rate, other.rate);
}

double Shape::cheaper_than(const Shape& other) const {
  return median_ratio(other.nanoseconds, nanoseconds);
}

std::vector<Result64> compete(const Run& run, const std::vector<Contender*>& contenders) {
  const Duration window = run.is_smoke() ? milliseconds{10} : milliseconds{400};
  std::vector<Result64> results(contenders.size());
  for (Contender* const each : contenders) static_cast<void>(each->run(32, window / 4));
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i)
      results[i].many.add(round, contenders[i]->run(32, window));
    for (std::size_t i = 0; i < contenders.size(); ++i)
      results[i].one.add(round, contenders[i]->run(1, window));
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Result64& each = results[i];
    std::printf("load %s 64x32 %.0f/s %.0f ns 64x1 %.0f/s %.0f ns\n", contenders[i]->name().c_str(),
                median(each.many.rate), median(each.many.nanoseconds), median(each.one.rate),
                median(each.one.nanoseconds));
  }
  return results;
}

}  // namespace windlass::bench
