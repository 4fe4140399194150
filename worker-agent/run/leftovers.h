// What the user of workers left where all users of the machine may write: files in shared folders, and System
// V shared memory, semaphores and queues. For workers that have no mount namespace, with which all of that
// ends.
#pragma once

#include "worker-agent/core/confinement.h"

namespace windlass::agent {

// Removes it as that user, so that no link or race can make us remove what is another's. Only for a user that
// is reserved for workers, while none of its processes run.
void remove_leftovers(const Confinement& confinement);

}  // namespace windlass::agent
