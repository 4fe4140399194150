// One Frame to the bytes of one message, in either wire revision, straight into a reused buffer: no tree is
// built.
#pragma once

#include <string>

#include "protocol/codec/decode.h"
#include "protocol/messages/frame.h"

namespace windlass {

// Appends the message to `out` and says what kind it is. Of a frame within the schemas' bounds the output
// decodes to the same frame. Texts that are JSON already (payload, ext, manifests, limits) are copied as they
// are. A heartbeat's `metrics`, if not empty, is the whole object and is copied; the fields beside it are
// then not read. Revision 1 is sent nothing it does not list: attachments, ext and positions it lacks are
// left out, and a runtime speaks as scheduler.
MessageKind encode(const Frame& frame, Revision revision, std::string& out);

}  // namespace windlass
