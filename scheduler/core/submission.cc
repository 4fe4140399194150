#include "scheduler/core/submission.h"

#include <algorithm>
#include <string>

#include "scheduler/core/apps.h"
#include "scheduler/core/core_options.h"

namespace windlass {
namespace {

Error refuse(std::string_view pointer, std::string_view what, ErrorCode code = ErrorCode::ProtoSchema) {
  return {code, Blame::Peer, std::string{pointer} + ": " + std::string{what}};
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool is_type(std::string_view text) {
  if (!text.starts_with("biz.") && !text.starts_with("ext.")) return false;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return std::ranges::all_of(text, is_letter) && text.find("..") == std::string_view::npos &&
         text.back() != '.';
}

}  // namespace

Result<Done> check(const WorkerKey& worker) {
  const std::string& tenant = worker.tenant.value();
  const std::string& instance = worker.instance.value();
  if (tenant.empty() || tenant.size() > limits::kTenantBytesMax || !is_printable(tenant)) {
    return refuse("/tenant", "1 to 64 printable ASCII characters are wanted");
  }
  if (instance.empty() || instance.size() > limits::kIdBytesMax || !is_printable(instance)) {
    return refuse("/worker", "1 to 128 printable ASCII characters are wanted");
  }
  return Done{};
}

Result<Done> check_command_id(std::string_view id, std::size_t bytes_max) {
  if (id.size() > bytes_max || !is_printable(id)) {
    return refuse("/id", "at most " + std::to_string(bytes_max) + " printable ASCII characters are wanted");
  }
  if (id.starts_with('~')) return refuse("/id", "an id that starts with '~' belongs to the sessions");
  return Done{};
}

namespace {

Result<Done> check_whom(const SubmitCommand& request) {
  if (request.target.kind == CommandTarget::Kind::Worker) return check(request.worker);
  if (auto tenant = check(WorkerKey{request.worker.tenant, InstanceId{"any"}}); !tenant) return tenant;
  if (!is_version_name(request.target.name)) {
    return refuse(request.target.is_of_application() ? "/application" : "/language",
                  "1 to 64 letters, digits, '-', '_', '.' and '+' are wanted, a letter or digit first");
  }
  return Done{};
}

}  // namespace

Result<Done> check(const SubmitCommand& request, RowReader& reader) {
  if (auto whom = check_whom(request); !whom) return whom;
  if (auto id = check_command_id(request.id, limits::kIdBytesMax); !id) return id;
  if (request.type.size() > limits::kTypeBytesMax || !is_type(request.type)) {
    return refuse(
        "/type",
        "a name that starts with biz. or ext. is wanted, of letters, digits, '_' and '-' between dots");
  }
  if (request.payload.size() > limits::kCommandPayloadBytesMax) {
    return refuse("/payload",
                  "at most " + std::to_string(limits::kCommandPayloadBytesMax) + " bytes fit one frame",
                  ErrorCode::LimitFrame);
  }
  if (!reader.is_payload(request.payload)) {
    return refuse("/payload", "one JSON object is wanted, nested at most " +
                                  std::to_string(limits::kNestingDepthMax - 1) + " deep");
  }
  if (request.timeout &&
      (*request.timeout < milliseconds{1} || *request.timeout > limits::kCommandTimeoutMax)) {
    return refuse("/timeout_ms", "1 to " + std::to_string(limits::kCommandTimeoutMax / milliseconds{1}) +
                                     " is wanted: workers remember what they did no longer");
  }
  return Done{};
}

}  // namespace windlass
