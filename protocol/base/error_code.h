// The one list of error codes. schema/errors.json says what each means and who may send it; a lint check
// holds the two together.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string_view>

// clang-format off
#define WINDLASS_ERROR_CODES(X)                          \
  X(AuthInvalidToken,      "E.AUTH.INVALID_TOKEN")       \
  X(AuthMissingToken,      "E.AUTH.MISSING_TOKEN")       \
  X(AuthMtlsRequired,      "E.AUTH.MTLS_REQUIRED")       \
  X(AuthModeUnsupported,   "E.AUTH.MODE_UNSUPPORTED")    \
  X(AuthHandshakeRequired, "E.AUTH.HANDSHAKE_REQUIRED")  \
  X(AuthUnauthenticated,   "E.AUTH.UNAUTHENTICATED")     \
  X(SessionStaleBinding,   "E.SESSION.STALE_BINDING")    \
  X(SessionDenied,         "E.SESSION.DENIED")           \
  X(SessionAckInvalid,     "E.SESSION.ACK_INVALID")      \
  X(SessionUnknown,        "E.SESSION.UNKNOWN")          \
  X(SessionTenantMismatch, "E.SESSION.TENANT_MISMATCH")  \
  X(SessionNotRegistered,  "E.SESSION.NOT_REGISTERED")   \
  X(SessionMismatch,       "E.SESSION.MISMATCH")         \
  X(SessionInvalidToken,   "E.SESSION.INVALID_TOKEN")    \
  X(SessionSuperseded,     "E.SESSION.SUPERSEDED")       \
  X(SessionRestarting,     "E.SESSION.RESTARTING")       \
  X(SessionDraining,       "E.SESSION.DRAINING")         \
  X(SessionWouldBlock,     "E.SESSION.WOULD_BLOCK")      \
  X(CmdUnknown,            "E.CMD.UNKNOWN")              \
  X(ResultDuplicate,       "E.RESULT.DUPLICATE")         \
  X(ResultSeqGap,          "E.RESULT.SEQ_GAP")           \
  X(PkgInvalid,            "E.PKG.INVALID")              \
  X(ProtoJson,             "E.PROTO.JSON")               \
  X(ProtoSchema,           "E.PROTO.SCHEMA")             \
  X(ProtoVersion,          "E.PROTO.VERSION")            \
  X(ProtoState,            "E.PROTO.STATE")              \
  X(ProtoWebSocket,        "E.PROTO.WEBSOCKET")          \
  X(LimitFrame,            "E.LIMIT.FRAME")              \
  X(LimitRate,             "E.LIMIT.RATE")               \
  X(LimitErrors,           "E.LIMIT.ERRORS")             \
  X(LimitCapacity,         "E.LIMIT.CAPACITY")           \
  X(WorkerLost,            "E.WORKER.LOST")              \
  X(StoreFull,             "E.STORE.FULL")               \
  X(StoreStale,            "E.STORE.STALE")              \
  X(StoreInvalid,          "E.STORE.INVALID")            \
  X(StoreFailed,           "E.STORE.FAILED")             \
  X(Internal,              "E.INTERNAL")                 \
  X(Timeout,               "E.TIMEOUT")
// clang-format on

namespace windlass {

enum class ErrorCode {
#define WINDLASS_ENUMERATOR(name, text) name,
  WINDLASS_ERROR_CODES(WINDLASS_ENUMERATOR)
#undef WINDLASS_ENUMERATOR
};

#define WINDLASS_ENUMERATOR(name, text) ErrorCode::name,
inline constexpr std::size_t kErrorCodes =
    std::initializer_list<ErrorCode>{WINDLASS_ERROR_CODES(WINDLASS_ENUMERATOR)}.size();
#undef WINDLASS_ENUMERATOR

std::string_view to_string(ErrorCode code);
std::optional<ErrorCode> error_code_from(std::string_view text);

}  // namespace windlass
