// Stands between the agent and a language worker: confines the worker, passes signals on, and sees to it that
// nothing the worker started outlives it, however it was started. Ends as the worker ended.
//
// Whatever a worker leaves behind becomes a child of this process, because it is a child subreaper. When the
// agent's end of the alive pipe closes, the agent is gone or has lost its patience: everything is killed.
#pragma once

#include <string>
#include <vector>

#include "worker-agent/core/confinement.h"

namespace windlass::agent {

struct SuperviseOptions {
  Confinement confinement;
  std::string folder;                // where it runs
  std::vector<std::string> command;  // program and arguments
  int report = -1;                   // "pid 1234\n", the program's once it runs, or why it does not
  int alive = -1;                    // read end
};

// The exit code; a worker that a signal ended ends this process by the same signal instead.
int supervise(const SuperviseOptions& options);

// Kills what an earlier worker of this user left behind and removes what it wrote to shared folders, if the
// user is reserved for workers: its own supervisor does that, unless it was killed itself. Returns 0.
int sweep(const Confinement& confinement);

// Whether the confinement can be brought about here, and what it needs be reached: 0, or 1 after a sentence
// on standard error. On success, standard error lists the protections that are missing: kNoCallFilter,
// kNoPortRules, kNoOwnProc.
int check_confinement(const Confinement& confinement, const std::vector<std::string>& paths);

}  // namespace windlass::agent
