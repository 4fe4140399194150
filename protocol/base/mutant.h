// Planted bugs. MUTANT(name) is a constant false in every normal build; with WINDLASS_MUTANTS the simulator
// turns on one at a time, to prove that its oracles notice. Each name is listed in tests/sim/mutants.h.
#pragma once

#include <string_view>

namespace windlass {

#ifdef WINDLASS_MUTANTS
extern std::string_view active_mutant;  // set once by the simulator before a world starts
#define MUTANT(name) (::windlass::active_mutant == #name)
#else
#define MUTANT(name) false
#endif

}  // namespace windlass
