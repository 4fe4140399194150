// Every bound of the native worker, in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace windlass::native {

inline constexpr unsigned kThreadsMin = 4;
inline constexpr unsigned kThreadsMax = 1024;
inline constexpr std::int64_t kMessageBytesMax = 2147483647;  // what hosts pass for "no limit"

// Invocations that wait for a thread. A host that sends more than it was told slots for gets failures, not
// silence.
inline constexpr std::size_t kWaitingMax = 16384;
// Requests about the application, and invocations that came behind one.
inline constexpr std::size_t kControlTasksMax = 4096;
// Serialized messages on their way out. Functions wait while more lies there; the thread that reads never
// does.
inline constexpr std::size_t kOutboxBytesMax = std::size_t{64} << 20;
inline constexpr std::size_t kLogBytesMax = std::size_t{64} << 10;  // of one message; the rest is cut off

// Answers that may lie in the outbox before a write begins although more messages are at hand.
inline constexpr std::size_t kCorkedMax = 8;

// A function whose last runs were all that short runs on the reading thread: a handover would cost more than
// it.
inline constexpr std::chrono::microseconds kInlineRunMax{20};
inline constexpr std::uint32_t kShortRunsMin = 32;
// After that time on the reading thread somebody else reads.
inline constexpr std::chrono::milliseconds kTakeoverTick{2};
inline constexpr int kQuietTicks = 25;  // then the watch sleeps until it is needed

inline constexpr std::size_t kFunctionsMax = 1000;
inline constexpr std::size_t kFunctionNameBytesMax = 127;
inline constexpr std::size_t kManifestBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kSpareInvocationsMax = 256;
inline constexpr std::size_t kArenaBytes = 6 << 10;

// How long a host may take to end the stream after we have said our last word.
inline constexpr std::chrono::seconds kFarewell{1};

}  // namespace windlass::native
