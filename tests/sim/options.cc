#include "tests/sim/options.h"

#include <algorithm>
#include <array>
#include <span>

namespace windlass::sim {
namespace {

constexpr std::array kAllFaults = {
#define WINDLASS_SIM_VALUE(name) Fault::name,
    WINDLASS_SIM_FAULTS(WINDLASS_SIM_VALUE)
#undef WINDLASS_SIM_VALUE
};

template <class T, std::size_t N>
T pick(Random& random, const std::array<T, N>& choices) {
  return choices[random.below(N)];
}

Duration pick_ms(Random& random, std::initializer_list<std::int64_t> choices) {
  return milliseconds{*(choices.begin() + random.below(choices.size()))};
}

Credit pick_credit(Random& random) {
  Credit credit;
  credit.frames =
      pick(random, std::array<std::uint32_t, 9>{1, 2, 3, 4, 16, 64, 256, 256, limits::kWindowFramesMax});
  credit.bytes = pick(
      random, std::array<std::uint64_t, 6>{1, 100, 500, 4096, limits::kWindowBytes, limits::kWindowBytes});
  return credit;
}

// What both sides of a world agree on well enough; the rest is drawn per machine.
SessionConfig pick_config(Random& random) {
  SessionConfig config;
  config.ack_delay = pick_ms(random, {1, 5, 5, 50});
  config.retransmit_floor = pick_ms(random, {50, 200, 200, 500});
  config.handshake_stage = pick_ms(random, {3'000, 10'000});
  config.resume_ttl = pick_ms(random, {2'000, 15'000, 60'000, 300'000, 300'000});
  config.token_rotation = pick_ms(random, {5'000, 60'000, 1'800'000});
  config.drain_deadline = pick_ms(random, {3'000, 20'000, 60'000});
  config.backoff_cap = pick_ms(random, {1'000, 5'000, 30'000});
  config.heartbeat_interval = pick_ms(random, {1'000, 3'000, 10'000, 30'000});
  config.control_queue_max = pick(random, std::array<std::size_t, 3>{16, 64, 64});
  return config;
}

ClockPlan pick_clock(Random& random) {
  ClockPlan clock;
  clock.steady_base = Duration{seconds{1}} + random.below(Duration{seconds{1'000'000}});
  clock.wall_offset = random.below(Duration{seconds{7200}}) - Duration{seconds{3600}};
  if (random.one_in(2)) clock.wall_offset /= 1000;
  clock.drift_ppm = static_cast<std::int64_t>(random.below(401)) - 200;
  return clock;
}

LinkPlan pick_link(Random& random) {
  LinkPlan link;
  link.latency = pick_ms(random, {0, 1, 5, 40, 150});
  link.jitter = pick_ms(random, {0, 1, 10, 100});
  link.bytes_per_second = pick(random, std::array<std::uint64_t, 4>{0, 0, 0, 50'000});
  link.buffer_bytes = pick(random, std::array<std::size_t, 5>{500, 4'000, 65'536, 65'536, 1'000'000});
  link.split_percent = pick(random, std::array<std::uint64_t, 3>{2, 10, 50});
  link.corks = random.one_in(2);
  return link;
}

}  // namespace

std::string_view to_string(Fault fault) {
  static constexpr std::array<std::string_view, kAllFaults.size()> kNames = {
#define WINDLASS_SIM_NAME(name) #name,
      WINDLASS_SIM_FAULTS(WINDLASS_SIM_NAME)
#undef WINDLASS_SIM_NAME
  };
  return kNames[static_cast<std::size_t>(fault)];
}

std::uint64_t weight(Fault fault) {
  switch (fault) {
    case Fault::CutInTraffic:
      return 8;
    case Fault::Cut:
    case Fault::HalfOpen:
    case Fault::LateClose:
    case Fault::Stall:
      return 4;
    case Fault::DelaySpike:
    case Fault::Replay:
    case Fault::Lose:
    case Fault::TokenRotation:
    case Fault::CloseCredit:
    case Fault::WorkerCrash:
    case Fault::SchedulerCrash:
      return 2;
    default:
      return 1;
  }
}

WorldOptions WorldOptions::from_seed(std::uint64_t seed) {
  Random random{seed * 0x9e3779b97f4a7c15ULL + 1};
  WorldOptions options;
  options.seed = seed;
  const SessionConfig shared = pick_config(random);
  options.scheduler_config = shared;
  options.scheduler_config.receive_credit = pick_credit(random);
  options.scheduler_clock = pick_clock(random);
  options.scheduler_commit_time_max = pick_ms(random, {0, 1, 5, 30});
  options.own_delay_max = pick_ms(random, {0, 1, 20, 500});
  options.safety_time = pick_ms(random, {10'000, 30'000, 60'000, 120'000});
  options.fault_interval = pick_ms(random, {300, 1'000, 3'000, 10'000});
  options.commands = random.below(160);
  options.events = random.below(160);
  options.comes_in_bursts = random.one_in(2);
  // Enough of it to fill windows that few worlds fill.
  const bool is_busy = random.one_in(25);
  if (is_busy) {
    options.commands = 500 + random.below(1500);
    options.events = 500 + random.below(1500);
    options.comes_in_bursts = true;
  }
  options.payload_bytes_max = pick(random, std::array<std::size_t, 4>{20, 200, 200, 6'000});

  for (const Fault fault : kAllFaults) {
    if (random.one_in(2)) options.faults.push_back(fault);
  }
  // A cloned machine doubles effects, so the oracles must know of it; and it is rare.
  if (!random.one_in(3)) std::erase(options.faults, Fault::Twin);
  options.has_twins = std::ranges::count(options.faults, Fault::Twin) > 0;
  if (options.has_twins) std::erase(options.faults, Fault::Conflict);
  options.tokens_stay_valid = true;
  for (const Fault fault : {Fault::Twin, Fault::Revoke, Fault::KeyRotation, Fault::WallJump}) {
    if (std::ranges::count(options.faults, fault) > 0) options.tokens_stay_valid = false;
  }
  options.trusts_acks = !options.has_twins && random.one_in(2);

  const std::uint64_t workers = 1 + random.below(5);
  for (std::uint64_t i = 0; i < workers; ++i) {
    WorkerPlan plan;
    plan.revision = random.one_in(4) ? Revision::One : Revision::Two;
    plan.changes_revision = random.one_in(5);
    plan.sends_attachments = plan.revision == Revision::Two && !plan.changes_revision && random.one_in(2);
    plan.config = shared;
    plan.config.receive_credit = pick_credit(random);
    plan.clock = pick_clock(random);
    plan.link = pick_link(random);
    plan.commit_time_max = pick_ms(random, {0, 1, 5, 30});
    plan.work_time_max = pick_ms(random, {0, 10, 200, 2'000});
    // A slow link with deep buffers: what waits in it takes longer than all attempts to send a frame again.
    if (is_busy && random.one_in(2)) {
      plan.link.bytes_per_second = 50'000;
      plan.link.buffer_bytes = 1'000'000;
      plan.config.receive_credit = {limits::kWindowFramesMax, limits::kWindowBytes};
      options.payload_bytes_max = 6'000;
    }
    options.workers.push_back(plan);
  }
  return options;
}

}  // namespace windlass::sim
