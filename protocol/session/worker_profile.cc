#include "protocol/session/worker_profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace windlass {
namespace {

std::vector<std::string> owned(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}
std::vector<std::string_view> viewed(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

void describe(const Register& body, WorkerProfile& profile) {
  profile.max_parallel = body.max_parallel;
  profile.per_node_limits = body.per_node_limits;
  profile.runtimes = owned(body.runtimes);
  profile.features = owned(body.features);
  profile.payload_types = owned(body.payload_types);
  profile.channels = owned(body.channels);
  profile.packages.clear();
  for (const auto& package : body.packages) {
    profile.packages.push_back({std::string{package.name}, std::string{package.version}, package.status});
  }
  profile.manifests.clear();
  for (const auto& manifest : body.manifests) {
    profile.manifests.push_back(
        {std::string{manifest.name}, std::string{manifest.version}, std::string{manifest.manifest}});
  }
}

Register register_of(const WorkerProfile& profile) {
  Register body;
  body.max_parallel = profile.max_parallel;
  body.per_node_limits = profile.per_node_limits;
  body.runtimes = viewed(profile.runtimes);
  body.features = viewed(profile.features);
  body.payload_types = viewed(profile.payload_types);
  body.channels = viewed(profile.channels);
  for (const auto& package : profile.packages)
    body.packages.push_back({package.name, package.version, package.status});
  for (const auto& manifest : profile.manifests) {
    body.manifests.push_back({manifest.name, manifest.version, manifest.manifest});
  }
  return body;
}

}  // namespace windlass
