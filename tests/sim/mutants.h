// The planted bugs that the worlds must notice: a MUTANT(name) of the production code, what it breaks, and
// the test that every one of them is caught. The hooks that are not listed are not noticed yet. Only
// windlass-sim-mutants is built with them.
#pragma once

#include <array>
#include <string_view>

#include "tests/sim/runner.h"

namespace windlass::sim {

struct Mutant {
  std::string_view name;
  std::string_view breaks;
};

inline constexpr std::array kMutants = {
    Mutant{"window_overruns_edge", "sends one frame beyond the credit given (WIN-2)"},
    Mutant{"window_frees_on_bitmap", "frees frames that are only held, not owned (ACK-3)"},
    Mutant{"window_delivers_duplicates", "delivers what was received before (WIN-6)"},
    Mutant{"ack_before_owned", "acknowledges what the owner has not taken (ACK-1)"},
    Mutant{"resume_skips_one", "leaves out the first frame that a resume must send again (RES-4)"},
    Mutant{"fence_heeds_old_close", "the close of a superseded connection detaches the session (FEN-1)"},
    Mutant{"journal_forgets_results", "forgets what was done as soon as it is done (IDM-1)"},
    Mutant{"journal_ignores_body", "takes another body under a known id for the same (IDM-2)"},
};

void print_mutants();
// False when this program has no planted bugs, or none of this name.
bool activate_mutant(std::string_view name);
// Runs each until it is caught, at most `options.count` seeds. The exit code of the program.
int catch_mutants(const RunOptions& options);

}  // namespace windlass::sim
