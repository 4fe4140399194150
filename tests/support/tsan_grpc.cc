// What the thread sanitizer cannot see of gRPC, whose library is not instrumented: what came before an
// operation began is done when its tag leaves the completion queue, and what was done to a slice is done when
// the library lets go of it. Linked in the tsan build only, where these functions stand before the library's
// own.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <sanitizer/tsan_interface.h>

namespace {

template <class Function>
Function* library_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// In the program rather than in the environment, which an agent does not hand on to its language worker.
extern "C" const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1";
}

// Every operation of every kind begins here, within the library (src/core/lib/surface/completion_queue.h).
bool grpc_cq_begin_op(grpc_completion_queue* queue, void* tag);
bool grpc_cq_begin_op(grpc_completion_queue* queue, void* tag) {
  static auto* const begin =
      library_function<decltype(grpc_cq_begin_op)>("_Z16grpc_cq_begin_opP21grpc_completion_queuePv");
  __tsan_release(tag);
  return begin(queue, tag);
}

extern "C" grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                                 void* reserved) {
  static auto* const next =
      library_function<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  const grpc_event event = next(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

extern "C" grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                                  gpr_timespec deadline, void* reserved) {
  static auto* const pluck =
      library_function<decltype(grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  const grpc_event event = pluck(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(tag);
  return event;
}

namespace {

struct SliceOwner {
  void (*destroy)(void*);
  void* user_data;
};

void let_go(void* data) {
  auto* const owner = static_cast<SliceOwner*>(data);
  __tsan_acquire(owner);
  owner->destroy(owner->user_data);
  delete owner;
}

}  // namespace

extern "C" grpc_slice grpc_slice_new_with_user_data(void* bytes, size_t size, void (*destroy)(void*),
                                                    void* user_data) {
  static auto* const make =
      library_function<decltype(grpc_slice_new_with_user_data)>("grpc_slice_new_with_user_data");
  auto* const owner = new SliceOwner{destroy, user_data};
  __tsan_release(owner);
  return make(bytes, size, let_go, owner);
}
