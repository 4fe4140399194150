// Writes the seed corpus of fuzz_session: the choices of some random runs, as bytes that make the same runs.
//   make_session_corpus tests/fuzz/corpus/session
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/support/session_operations.h"

int main(int argc, char** argv) {
  using namespace windlass::testing;
  if (argc != 2) return std::fprintf(stderr, "usage: make_session_corpus FOLDER\n"), 2;
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    Choices choices{seed};
    const OperationsReport report = run_session_operations(choices, seed <= 24 ? 60 : 200);
    std::ofstream file{std::string{argv[1]} + "/run-" + std::to_string(seed), std::ios::binary};
    file.write(reinterpret_cast<const char*>(choices.taken().data()),
               static_cast<std::streamsize>(report.choices));
  }
  return 0;
}
