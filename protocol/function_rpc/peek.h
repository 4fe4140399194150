// Reads of a serialized StreamingMessage only what one acts on without decoding it: which content it has, its
// request id and the invocation it belongs to. Used where messages pass through: the agent's relay and the
// lanes of a session channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/result.h"

namespace windlass::function_rpc {

// Field numbers of StreamingMessage.content, as in schema/proto/function_rpc.proto.
enum class Content : std::uint32_t {
  None = 0,
  RpcLog = 2,
  InvocationRequest = 4,
  InvocationResponse = 5,
  FileChangeEventRequest = 6,
  WorkerActionResponse = 7,
  FunctionLoadRequest = 8,
  FunctionLoadResponse = 9,
  WorkerStatusRequest = 12,
  WorkerStatusResponse = 13,
  WorkerTerminate = 14,
  WorkerHeartbeat = 15,
  WorkerInitResponse = 16,
  WorkerInitRequest = 17,
  StartStream = 20,
  InvocationCancel = 21,
  FunctionEnvironmentReloadRequest = 25,
  FunctionEnvironmentReloadResponse = 26,
  CloseSharedMemoryResourcesRequest = 27,
  CloseSharedMemoryResourcesResponse = 28,
  FunctionsMetadataRequest = 29,
  FunctionMetadataResponse = 30,
  FunctionLoadRequestCollection = 31,
  FunctionLoadResponseCollection = 32,
  WorkerWarmupRequest = 33,
  WorkerWarmupResponse = 34,
  WorkerSpecialized = 100,
  WorkerSpecializedResponse = 101,
  WorkerEnded = 102,
  WorkerStayDown = 103,
  HttpStream = 110,
};

// Views into the message.
struct Peeked {
  Content content = Content::None;  // the last one, as a decoder would have it
  std::string_view request_id;
  std::string_view body;           // of the content
  std::string_view invocation_id;  // of a log, an invocation's request, response or cancel; empty: none
};

// E.PROTO.SCHEMA for bytes that are no protobuf message. Says nothing of what is inside `body` beyond the
// invocation id.
Result<Peeked> peek(std::string_view message);

// The last field of this number in one message, if it has one and it holds bytes. E.PROTO.SCHEMA as above.
Result<std::optional<std::string_view>> find_bytes(std::string_view message, std::uint32_t field);

// Pieces to write a StreamingMessage with: a text field, and one whose bytes are at hand.
void append_bytes(std::string& to, std::uint32_t field, std::string_view bytes);
void append_head(std::string& to, std::uint32_t field, std::size_t bytes);  // what comes before the bytes
void append_varint(std::string& to, std::uint64_t value);
std::string compose(std::string_view request_id, Content content, std::string_view body);

}  // namespace windlass::function_rpc
