// What can be said of an exception that user code threw.
#pragma once

#include <string>

namespace windlass::native {

struct ExceptionText {
  std::string type;  // as written in C++
  std::string message;
  bool cancelled = false;  // it is windlass::Cancelled
};

// To be called in a catch block.
ExceptionText current_exception_text();

}  // namespace windlass::native
