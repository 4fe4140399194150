// Servers measured side by side: each on a thread of its own, loaded in turn by one client, medians of five
// interleaved rounds.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/bar.h"
#include "tests/bench/beast/wss_beast.h"
#include "tests/bench/identity.h"
#include "tests/bench/wss_load.h"

namespace windlass::bench {

struct LoadSample {
  double rate = 0;                // answers per second, as the client saw them
  double server_nanoseconds = 0;  // processor time of the server for each
};

// A server with its connections, 64 of them unless this is a smoke run.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string name() const = 0;
  virtual LoadSample run(std::size_t in_flight, Duration window) = 0;  // on each connection
};

// One that runs on a thread of this process.
class Contest final : public Contender {
 public:
  Contest(std::string name, std::unique_ptr<EchoServer> server, const TlsContext& client_tls,
          std::function<std::unique_ptr<LoadProtocol>(std::size_t)> protocol);
  ~Contest() override;
  std::string name() const override { return name_; }
  LoadSample run(std::size_t in_flight, Duration window) override;
  std::vector<double> run_paced(double per_second, Duration window);

 private:
  std::string name_;
  std::unique_ptr<EchoServer> server_;
  std::thread thread_;
  EventLoop loop_;
  std::unique_ptr<LoadClient> client_;
};

// Of one server under one load, in all rounds.
struct Shape {
  Samples rate{};
  Samples nanoseconds{};

  void add(std::size_t round, const LoadSample& sample);
  double rate_over(const Shape& other) const;     // the median of the rounds' ratios
  double cheaper_than(const Shape& other) const;  // by the server's processor time
};

struct Result64 {
  Shape many;  // 64 connections, 32 in flight on each
  Shape one;   // one on each
};

// In the order given.
std::vector<Result64> compete(const Run& run, const std::vector<Contender*>& contenders);

}  // namespace windlass::bench
