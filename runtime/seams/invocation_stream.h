// What flows beside one invocation: the HTTP request and answer of a worker that streams. The pieces are
// contents of FunctionRpc messages; what is in them is not the desk's business.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/values.h"

namespace windlass::runtime {

class InvocationStream {
 public:
  virtual ~InvocationStream() = default;
  // A worker was chosen. The message goes to it before the invocation does; if its channel took it,
  // on_begun() is called, once.
  virtual std::string first_message(const InvocationId& id) = 0;
  virtual void on_begun() = 0;
  virtual void on_piece(std::string_view body) = 0;   // from the worker's agent
  virtual void on_lost(std::string_view reason) = 0;  // the channel is gone; nothing follows
};

}  // namespace windlass::runtime
