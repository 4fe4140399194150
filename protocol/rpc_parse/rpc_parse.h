// Reads FunctionRpc messages that language workers write. Their libraries do not all check that text is
// UTF-8, and libprotobuf refuses a whole message for one bad character; a function that logs half an emoji
// would so lose everything its worker has under way. Bad text is mended instead, as C#'s protobuf does.
#pragma once

#include <string_view>

namespace google::protobuf {
class Message;
}

namespace windlass::function_rpc {

// False: the bytes are no such message, whatever is done about its texts.
[[nodiscard]] bool parse_mended(google::protobuf::Message& to, std::string_view bytes);

}  // namespace windlass::function_rpc
