// A worker goes to other applications and comes back while the one it leaves gets 5 000 invocations a second:
// whether any message is lost, doubled or out of order, and how long those take that are due meanwhile.
//
// Two workers serve the application. The one that goes announces it with invocations in its hands and answers
// them while the runtime indexes where it goes, so that the answers are held during the switch.
#include <algorithm>
#include <cstdio>
#include <future>
#include <map>
#include <sstream>

#include "runtime/adapters/rpc_values.h"
#include "schema/proto/function_rpc.pb.h"
#include "tests/bench/load_connection.h"
#include "tests/bench/rpc_sections.h"
#include "tests/bench/runtime_under_test.h"
#include "tests/bench/session_workers.h"

namespace windlass::bench {
namespace {

constexpr double kSwitchLoad = 5'000;

// Numbered invocations, whose answers, logs and order are looked at.
class NumberedHost final : public RpcHost {
 public:
  explicit NumberedHost(RuntimeUnderTest& under_test) : runtime_(under_test.runtime()) {
    under_test.wait_for(kSteadyApplication);
  }
  std::string name() const override { return kSteadyApplication; }
  void perform(std::function<void()> work) override { runtime_.loop().post(std::move(work)); }
  void invoke(std::uint64_t tag) override {
    std::string text = std::to_string(tag);
    text.resize(std::max(text.size(), kPayloadBytes), ' ');
    submit(text, [this, tag, text](const runtime::Outcome& outcome, const std::vector<std::string>& logs) {
      if (answer_of(outcome) != text || logs != std::vector<std::string>{"0", "1"}) ++wrong_;
      std::uint64_t& last = last_of_[outcome.worker];
      if (tag < last) ++reordered_;
      last = tag;
      on_answer(tag);
    });
  }
  // One invocation by itself, and what it answers.
  std::string ask(const std::string& text) {
    std::promise<std::string> answer;
    perform([&] {
      submit(text, [&](const runtime::Outcome& outcome, const std::vector<std::string>&) {
        answer.set_value(answer_of(outcome));
      });
    });
    return answer.get_future().get();
  }
  // Numbers begin again, here and with the workers, who say what they saw.
  std::string begin_anew() {
    std::string report = ask(kReport);
    last_of_.clear();
    return report;
  }
  std::uint64_t wrong() const { return wrong_; }
  std::uint64_t reordered() const { return reordered_; }

 private:
  void submit(const std::string& text, runtime::CoreDesk::CallDone done) {
    runtime::TriggerInput input;
    input.binding = "event";
    input.data.kind = runtime::Datum::Kind::Text;
    input.data.value = text;
    const auto begun =
        runtime_.desk().submit({.job_host = {kSteadyApplication, kVersion},
                                .function = kEchoFunction,
                                .body = std::make_shared<const std::string>(write_invocation_body(input)),
                                .source = "bench",
                                .wants_logs = true},
                               std::move(done));
    if (!begun) stop_bench("an invocation was refused: " + begun.error().reason);
  }
  static std::string answer_of(const runtime::Outcome& outcome) {
    AzureFunctionsRpcMessages::InvocationResponse response;
    if (!response.ParseFromString(outcome.body)) return "what is no answer";
    return response.return_value().string();
  }

  runtime::Runtime& runtime_;
  std::map<runtime::WorkerId, std::uint64_t> last_of_;
  std::uint64_t wrong_ = 0;
  std::uint64_t reordered_ = 0;
};

// As the workers tell it, see session_workers.cc.
struct SwitchReport {
  explicit SwitchReport(const std::string& text) {
    std::istringstream in{text};
    in >> received >> doubled >> reordered;
    for (Duration::rep from = 0, to = 0; in >> from >> to;) {
      switches.emplace_back(Instant{Duration{from}}, Instant{Duration{to}});
    }
  }
  // Those that were due while a switch was under way.
  std::vector<RpcTime> during(const std::vector<RpcTime>& times) const {
    std::vector<RpcTime> chosen;
    for (const RpcTime& time : times) {
      const bool is_due = std::ranges::any_of(switches, [&](const auto& span) {
        return time.due >= span.first - milliseconds{1} && time.due <= span.second;
      });
      if (is_due) chosen.push_back(time);
    }
    return chosen;
  }
  std::uint64_t received = 0;
  std::uint64_t doubled = 0;
  std::uint64_t reordered = 0;
  std::vector<std::pair<Instant, Instant>> switches;
};

}  // namespace

void switch_bars(Run& run, Identity& identity) {
  const Duration window = run.is_smoke() ? milliseconds{200} : seconds{2};
  RuntimeUnderTest runtime{identity};
  const auto workers = SessionWorkers::switching_pair(identity, runtime.port());
  NumberedHost host{runtime};
  static_cast<void>(pace(host, kSwitchLoad, window / 4));
  std::uint64_t lost = 0;
  std::uint64_t doubled = 0;
  std::uint64_t reordered = 0;
  std::size_t switches = 0;
  Samples ratios{};
  Samples before{};
  Samples during{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    static_cast<void>(host.begin_anew());
    before[round] = quantile(pace(host, kSwitchLoad, window), 0.99);
    static_cast<void>(host.begin_anew());
    static_cast<void>(host.ask(kBeginSwitching));
    const std::vector<RpcTime> times = pace(host, kSwitchLoad, window);
    static_cast<void>(host.ask(kEndSwitching));
    const SwitchReport report{host.begin_anew()};
    const std::vector<RpcTime> chosen = report.during(times);
    if (chosen.empty()) stop_bench("no worker was switched while the load ran");
    during[round] = quantile(chosen, 0.99);
    ratios[round] = during[round] / before[round];
    lost += times.size() - std::min<std::size_t>(times.size(), report.received);
    doubled += report.doubled;
    reordered += report.reordered;
    switches += report.switches.size();
  }
  std::printf(
      "switch: %zu at %.0f/s: %llu lost, %llu doubled, %llu and %llu out of order, %llu wrong; p99 %.2f ms, "
      "before %.2f ms\n",
      switches, kSwitchLoad, static_cast<unsigned long long>(lost), static_cast<unsigned long long>(doubled),
      static_cast<unsigned long long>(reordered), static_cast<unsigned long long>(host.reordered()),
      static_cast<unsigned long long>(host.wrong()), median(during) * 1e3, median(before) * 1e3);
  run.bar("rpc_switch_messages_lost_doubled_or_reordered",
          static_cast<double>(lost + doubled + reordered + host.reordered() + host.wrong()), "<=", 0);
  run.bar("rpc_switch_p99_vs_before", median(ratios), "<=", 2);
}

}  // namespace windlass::bench
