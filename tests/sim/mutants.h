// The planted bugs that the worlds must notice: a MUTANT(name) of the production code, what it breaks, and
// the test that every one of them is caught. Only windlass-sim-mutants is built with them.
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
    Mutant{"window_ignores_bytes", "takes more bytes than it offered to hold (WIN-7)"},
    Mutant{"window_delivers_duplicates", "delivers what was received before (WIN-6)"},
    Mutant{"ack_before_owned", "acknowledges what the owner has not taken (ACK-1)"},
    Mutant{"window_takes_credit_back", "moves the right edge back when the owner offers less (WIN-10)"},
    Mutant{"probes_nothing", "waits for credit without ever asking (WIN-11)"},
    Mutant{"window_minds_old_acks", "ends a session over an ack that says less than an earlier one (ACK-5)"},
    Mutant{"window_believes_lies", "overlooks an ack of what was never sent (ACK-4)"},
    Mutant{"end_returns_too_little", "keeps the oldest unacknowledged message when a session ends (RTX-5)"},
    Mutant{"resends_while_blocked", "lets the timer run while its own transport is full (RTX-2)"},
    Mutant{"gives_up_behind_data", "ends a session whose ack lies behind the peer's own frames (RTX-4)"},
    Mutant{"resume_skips_one", "leaves out the first frame that a resume must send again (RES-4)"},
    Mutant{"resume_resends_held", "sends again after a resume what the peer said it holds (RES-4)"},
    Mutant{"resume_forgets_drain", "does not repeat an unanswered drain after a resume (DRN-1)"},
    Mutant{"token_drops_old_at_once", "refuses the old token before the new one has arrived (TOK-2)"},
    Mutant{"fence_hears_old_connection", "frames of a superseded connection change the session (FEN-1)"},
    Mutant{"fence_takes_old_tokens", "resumes with a token that its session has replaced (FEN-4)"},
    Mutant{"fence_heeds_old_close", "the close of a superseded connection detaches the session (FEN-1)"},
    Mutant{"journal_forgets_results", "forgets what was done as soon as it is done (IDM-1)"},
    Mutant{"journal_ignores_body", "takes another body under a known id for the same (IDM-2)"},
    Mutant{"journal_loses_last_record", "leaves out the last whole record when it reads a log (IDM-4)"},
    Mutant{"drain_takes_new_work", "gives new work to a worker that drains (DRN-2)"},
    Mutant{"drain_completes_early", "says that a drain is complete before all is acknowledged (DRN-4)"},
    Mutant{"drain_waits_for_ever", "keeps a session whose drain deadline has passed (DRN-5)"},
    Mutant{"liveness_waits_for_ever", "never gives up a connection that says nothing (LIV-4)"},
    Mutant{"errors_cost_nothing", "lets a peer make any number of mistakes (LIM-2)"},
    Mutant{"backoff_ignores_hint", "comes back sooner than retry_after_ms allows (RST-5)"},
};

void print_mutants();
// False when this program has no planted bugs, or none of this name.
bool activate_mutant(std::string_view name);
// Runs each until it is caught, at most over the run's seeds. The exit code of the program.
int catch_mutants(const SeedRun& run);

}  // namespace windlass::sim
