// From a register frame, which is views, to the profile that a scheduler keeps, and back.
#pragma once

#include "protocol/messages/control.h"
#include "protocol/session/session_event.h"

namespace windlass {

// Fills in everything that control.register says; names and versions of the handshake stay as they are.
void describe(const Register& body, WorkerProfile& profile);

// The views point into the profile.
Register register_of(const WorkerProfile& profile);

}  // namespace windlass
