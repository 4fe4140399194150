#include "conformance/runner/probe.h"

#include <cstdio>

#include "conformance/runner/player.h"

namespace windlass::conformance {
namespace {

Case ceremony(const char* id) {
  Case made;
  made.id = id;
  made.role = Role::Scheduler;
  made.steps = json::parse(R"([{"open": {}}])").as_array();
  made.behaviour = {{"done", Verdict::Ok}};
  return made;
}

// The last frame of this type in the wire log, as it came.
json::object last_frame(const CaseResult& result, std::string_view type) {
  json::object found;
  for (const WireEvent& event : result.wire) {
    if (event.kind != WireEvent::Kind::Received) continue;
    boost::system::error_code wrong;
    const json::value value = json::parse(event.text, wrong);
    if (!wrong && value.is_object() && value.at("type").is_string() && value.at("type").as_string() == type)
      found = value.as_object();
  }
  return found;
}

}  // namespace

int probe(const Setup& setup, bool as_json) {
  json::object facts;
  json::array revisions;
  std::string why;
  for (const int revision : {1, 2}) {
    const Case played = ceremony("PRB-0/open");
    const CaseResult result = Player{setup, played, revision}.play();
    if (result.behaviour != Verdict::Ok) {
      why = result.came;
      continue;
    }
    revisions.push_back(revision);
    const json::object accept = last_frame(result, "control.session.accept");
    if (revision != 2 || accept.empty()) continue;
    for (const char* const name :
         {"recv_window", "recv_window_bytes", "frame_bytes_max", "heartbeat_interval_ms", "resume_ttl_ms"}) {
      if (const auto* const value = accept.at("payload").as_object().if_contains(name)) facts[name] = *value;
    }
  }
  if (revisions.empty()) {
    std::fprintf(stderr, "windlass-conformance: no session could be opened: %s\n", why.c_str());
    return 1;
  }
  facts["revisions"] = revisions;
  // Who says nothing after the upgrade learns the deadline of the handshake.
  Case silent = ceremony("PRB-0/silence");
  silent.deadline = seconds{20};
  silent.steps = json::parse(R"([{"connect": {}}, {"expect_close": {}, "within_ms": 19000}])").as_array();
  const CaseResult waited = Player{setup, silent, 2}.play();
  if (waited.behaviour == Verdict::Ok)
    facts["handshake_deadline_ms"] = static_cast<std::int64_t>(waited.milliseconds);
  if (as_json) {
    std::printf("%s\n", json::serialize(facts).c_str());
  } else {
    for (const auto& [name, value] : facts) {
      std::printf("%-24s %s\n", std::string{name}.c_str(), json::serialize(value).c_str());
    }
  }
  return 0;
}

}  // namespace windlass::conformance
