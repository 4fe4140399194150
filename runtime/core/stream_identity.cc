#include "runtime/core/stream_identity.h"

#include <algorithm>

namespace windlass::runtime {
namespace {

Error stranger(std::string reason) {
  return {ErrorCode::AuthUnauthenticated, Blame::Peer, std::move(reason)};
}

Result<StreamIdentity> identify_credential(const StreamCredential& shown, bool says_agent,
                                           const StreamRules& rules) {
  if (shown.is_runtime) return stranger("this credential is one of a runtime, not of a worker");
  if (!rules.tenant.empty() && shown.tenant != rules.tenant) {
    return stranger("this runtime works for another tenant");
  }
  if (says_agent && !shown.is_agent) {
    return stranger("this credential is not one of an agent; set role = \"agent\" in its entry");
  }
  if (shown.instance.empty()) {
    return stranger("this credential is bound to no worker; set instance in its entry");
  }
  return StreamIdentity{shown.tenant, shown.instance,
                        says_agent                  ? std::string{}
                        : shown.application.empty() ? rules.application
                                                    : shown.application,
                        says_agent};
}

}  // namespace

Result<StreamIdentity> identify_stream(const StreamFacts& facts, const StreamRules& rules) {
  if (facts.shown) {
    if (!*facts.shown) return facts.shown->error();
    return identify_credential(**facts.shown, facts.says_agent, rules);
  }
  if (facts.says_agent) return stranger("an agent must show a certificate or a token of role agent");
  if (!facts.user) return stranger("whose process this is cannot be told; show a token");
  if (std::ranges::find(rules.users, *facts.user) == rules.users.end()) {
    return stranger("user " + std::to_string(*facts.user) +
                    " of this machine is not let in; name it in grpc.users, or show a token");
  }
  return StreamIdentity{rules.tenant, {}, rules.application, false};
}

}  // namespace windlass::runtime
