#include "scheduler/cli/certificates.h"
#include "scheduler/cli/commands.h"
#include "scheduler/cli/table.h"

namespace windlass::cli {

int new_certificate(const CertificateOptions& options) {
  CertificateRequest request;
  request.folder = options.folder;
  request.name = options.name;
  request.alternative_names = options.alternative_names;
  if (request.alternative_names.empty())
    request.alternative_names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"};
  request.days = options.days;
  request.overwrites = options.force;
  const auto issued = issue_certificate(request);
  if (!issued) {
    complain(issued.error().reason);
    return kExitUsage;
  }
  if (options.json) {
    print("{\"authority\":" + json_text(issued->authority_file) +
          ",\"certificate\":" + json_text(issued->certificate_file) +
          ",\"key\":" + json_text(issued->key_file) + ",\"fingerprint\":\"" + issued->fingerprint + "\"}\n");
    return kExitOk;
  }
  Table table{{"WHAT", "WHERE"}};
  table.add({issued->is_authority_new ? "authority (new, for development only)" : "authority",
             issued->authority_file});
  table.add({"certificate", issued->certificate_file});
  table.add({"key", issued->key_file});
  print(table.text());
  print(
      "\n# For the scheduler's credentials file, to let its holder in by certificate:\n"
      "# [[certificate]]\n# tenant = \"TENANT\"\n# fingerprint = \"" +
      issued->fingerprint + "\"\n");
  return kExitOk;
}

}  // namespace windlass::cli
