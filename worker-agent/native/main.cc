// windlass-native-worker: started by an agent or a host with the address of its FunctionRpc server. Exit 0:
// the host ended the stream in order; 1: it did not, or the command line is wrong.
#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <string>

#include "protocol/base/version.h"
#include "worker-agent/native/worker.h"

int main(int argc, char** argv) {
  using namespace windlass;
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("windlass-native-worker %s\n", std::string(version()).c_str());
    return 0;
  }
  const auto arguments =
      native::parse_arguments({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)});
  if (!arguments) {
    std::printf("%s\n%s", arguments.error().reason.c_str(), native::kUsage);
    return 1;
  }
  native::Worker worker(*arguments);
  const int code = worker.run();
  if (!worker.stop()) {
    // A function still runs, and a thread cannot be ended: leave without touching what it uses.
    std::fflush(nullptr);
    _exit(code);
  }
  return code;
}
