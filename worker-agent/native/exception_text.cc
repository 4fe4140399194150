#include "worker-agent/native/exception_text.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>

#include "worker-agent/native/include/windlass/function.h"

namespace windlass::native {
namespace {

std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : mangled;
}

constexpr int kNestedMax = 8;

void append_causes(const std::exception& thrown, std::string& message, int depth) {
  if (depth == kNestedMax) return;
  try {
    std::rethrow_if_nested(thrown);
  } catch (const std::exception& cause) {
    message += std::string("; caused by: ") + cause.what();
    append_causes(cause, message, depth + 1);
  } catch (...) {
    message += "; caused by something that is no std::exception";
  }
}

}  // namespace

ExceptionText current_exception_text() {
  ExceptionText text;
  const std::type_info* type = abi::__cxa_current_exception_type();
  text.type = type != nullptr ? readable(type->name()) : "an unknown exception";
  try {
    throw;
  } catch (const Cancelled& cancelled) {
    text.cancelled = true;
    text.message = cancelled.what();
  } catch (const std::exception& thrown) {
    text.message = thrown.what();
    append_causes(thrown, text.message, 0);
  } catch (const std::string& thrown) {
    text.message = thrown;
  } catch (const char* thrown) {
    text.message = thrown != nullptr ? thrown : "";
  } catch (...) {
    text.message = "something that is no std::exception was thrown";
  }
  return text;
}

}  // namespace windlass::native
