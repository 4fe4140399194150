// What the core says happened, in the log's words.
#include "runtime/shell/core_desk.h"

namespace windlass::runtime {
namespace {

struct NoteWords {
  std::string_view event;
  windlass::LogLevel level;
};

NoteWords words_of(Note::Kind kind) {
  constexpr windlass::LogLevel kDebug = windlass::LogLevel::Debug;
  constexpr windlass::LogLevel kInfo = windlass::LogLevel::Info;
  constexpr windlass::LogLevel kWarn = windlass::LogLevel::Warn;
  switch (kind) {
    case Note::Kind::WorkerConnected:
      return {"a worker connected", kInfo};
    case Note::Kind::WorkerInitialized:
      return {"a worker is initialized", kInfo};
    case Note::Kind::WorkerSpecializing:
      return {"a worker takes an application", kInfo};
    case Note::Kind::WorkerReady:
      return {"a worker is ready", kInfo};
    case Note::Kind::WorkerUnhealthy:
      return {"a worker is unhealthy", kWarn};
    case Note::Kind::WorkerRecovered:
      return {"a worker recovered", kInfo};
    case Note::Kind::WorkerDraining:
      return {"a worker drains", kInfo};
    case Note::Kind::WorkerAbandoned:
      return {"a worker is given up", kWarn};
    case Note::Kind::WorkerDisconnected:
      return {"a worker is gone", kInfo};
    case Note::Kind::JobHostCreated:
      return {"a JobHost runs", kInfo};
    case Note::Kind::JobHostStopped:
      return {"a JobHost stopped", kInfo};
    case Note::Kind::JobHostFailed:
      return {"a JobHost failed", kWarn};
    case Note::Kind::FunctionLoadFailed:
      return {"a function could not be loaded", kWarn};
    case Note::Kind::FunctionsDropped:
      return {"functions are not served any more", kInfo};
    case Note::Kind::InvocationRetried:
      return {"an invocation is tried again", kInfo};
    case Note::Kind::UnknownResponse:
      return {"an answer to nothing that is under way", kWarn};
    case Note::Kind::BadMessage:
      return {"a channel broke a rule and ends", kWarn};
    case Note::Kind::MessageUnreadable:
      return {"a message of a worker cannot be read and is left out", kWarn};
    case Note::Kind::Backpressure:
      return {"a worker does not take what it is sent", kWarn};
    case Note::Kind::MemoryPressure:
      return {"memory pressure changed", kWarn};
    case Note::Kind::MessageHeld:
      return {"a message waits for its worker's switch", kDebug};
    case Note::Kind::Switched:
      return {"a worker was switched to its JobHost", kDebug};
    case Note::Kind::StatusAnswered:
      return {"a worker answered a status request", kDebug};
  }
  return {"", kDebug};
}

// After these other functions may be served.
bool changes_functions(Note::Kind kind) {
  return kind == Note::Kind::JobHostCreated || kind == Note::Kind::JobHostStopped ||
         kind == Note::Kind::JobHostFailed || kind == Note::Kind::WorkerReady ||
         kind == Note::Kind::Switched || kind == Note::Kind::FunctionLoadFailed ||
         kind == Note::Kind::FunctionsDropped;
}

// These come as often as user code fails.
bool is_bounded(Note::Kind kind) {
  return kind == Note::Kind::FunctionLoadFailed || kind == Note::Kind::InvocationRetried;
}

}  // namespace

void CoreDesk::tell(const Note& note) {
  metrics_.count(note);
  if (note.kind == Note::Kind::JobHostCreated) has_come_ = true;
  if (changes_functions(note.kind)) {
    is_changed_ = true;
    settings_.clear();
  }
  const auto [event, level] = words_of(note.kind);
  if (!log_.takes(level)) return;
  const std::string_view function = log_text(note.function);
  const std::string_view reason = log_text(note.reason);
  if (is_bounded(note.kind) && !may_tell_failure(note.worker.value(), function.size() + reason.size()))
    return;
  std::optional<std::uint64_t> took;
  if (note.took) took = static_cast<std::uint64_t>(*note.took / milliseconds{1});
  const std::string job_host = note.job_host.application_id.empty() ? "" : note.job_host.text();
  log_.write(level, event,
             {{"worker", note.worker.value()},
              {"job_host", job_host},
              {"function", function},
              {"invocation", note.invocation.value()},
              {"reason", reason},
              {"took_ms", took}});
}

}  // namespace windlass::runtime
