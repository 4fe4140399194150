#include "worker-agent/adapters/function_rpc_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "protocol/adapters/socket_owner.h"
#include "protocol/function_rpc/peek.h"
#include "protocol/rpc_parse/rpc_parse.h"
#include "schema/proto/function_rpc.pb.h"
#include "worker-agent/adapters/socket_holder.h"

namespace windlass::agent {

// One stream, from the request for it to its end. Lives in the server's list until its last operation ended.
struct ServerCall {
  enum class State : std::uint8_t { Awaited, Stranger, Ours, Refused, Finishing } state = State::Awaited;

  ServerCall(const RpcStreamBounds& bounds, std::function<void()> wake)
      : stream(&context), pump(stream, stream, &read, &written, bounds, std::move(wake)) {}

  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream;
  RpcTag opened{RpcTag::Kind::Opened, this};
  RpcTag read{RpcTag::Kind::Read, this};
  RpcTag written{RpcTag::Kind::Written, this};
  RpcTag finished{RpcTag::Kind::Finished, this};
  RpcStream pump;
};

namespace {

constexpr std::size_t kBatchMax = 256;  // completions before the loop is woken
constexpr auto kProcessWait = std::chrono::milliseconds{2000};
constexpr auto kProcessPoll = std::chrono::milliseconds{10};

std::string worker_id_of(std::string_view message) {
  const auto peeked = function_rpc::peek(message);
  if (!peeked || peeked->content != function_rpc::Content::StartStream) return {};
  AzureFunctionsRpcMessages::StartStream start;
  if (!function_rpc::parse_mended(start, peeked->body)) return {};
  return start.worker_id();
}

}  // namespace

struct FunctionRpcServer::Inside {
  RpcServerOptions options;
  std::function<void()> wake;
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
  bool is_wake_due = false;  // the thread's
  std::thread thread;

  std::mutex mutex;  // of what follows
  std::list<std::shared_ptr<ServerCall>> calls;
  std::shared_ptr<ServerCall> ours;  // shared, since the loop may send while the stream ends
  bool is_over_told = true;
  bool is_closing = false;
  bool is_server_down = false;
  std::string expected;
  std::string attached;  // whose `ours` is

  void accept() {
    auto call = std::make_shared<ServerCall>(options.bounds, [this] { is_wake_due = true; });
    ServerCall& made = *call;
    calls.push_back(std::move(call));
    service.RequestCall(&made.context, &made.stream, queue.get(), queue.get(), &made.opened);
  }

  // The loop is woken once for all that is there, and then sends it on together.
  void serve() {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
      handle(*static_cast<RpcTag*>(tag), ok);
      for (std::size_t i = 0; i < kBatchMax && queue->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) ==
                                                   grpc::CompletionQueue::GOT_EVENT;
           ++i) {
        handle(*static_cast<RpcTag*>(tag), ok);
      }
      if (std::exchange(is_wake_due, false)) wake();
    }
  }

  void handle(const RpcTag& told, bool ok) {
    auto& call = *static_cast<ServerCall*>(told.call);
    switch (told.kind) {
      case RpcTag::Kind::Opened:
        return handle_opened(call, ok);
      case RpcTag::Kind::Read:
        return handle_read(call, ok);
      case RpcTag::Kind::Written:
        if (call.pump.handle_written(ok)) finish(call, grpc::Status::OK);
        return;
      case RpcTag::Kind::Finished:
        return forget(call);
    }
  }

  void handle_opened(ServerCall& call, bool ok) {
    if (!ok) return forget(call);
    {
      const std::lock_guard lock{mutex};
      if (is_closing) {
        call.context.TryCancel();
      } else {
        accept();
        make_room();
      }
      call.state = ServerCall::State::Stranger;
    }
    if (call.context.method() != kEventStream) {
      return finish(call, {grpc::StatusCode::UNIMPLEMENTED, "there is only FunctionRpc/EventStream here"});
    }
    call.stream.Read(&call.pump.read_buffer(), &call.read);
  }

  // With mutex held: who stays silent does not keep the worker out.
  void make_room() {
    const auto is_stranger = [](const auto& each) { return each->state == ServerCall::State::Stranger; };
    if (static_cast<std::size_t>(std::ranges::count_if(calls, is_stranger)) < options.strangers_max) return;
    (*std::ranges::find_if(calls, is_stranger))->context.TryCancel();
  }

  void handle_read(ServerCall& call, bool ok) {
    if (call.state == ServerCall::State::Ours) {
      if (call.pump.handle_read(ok)) finish(call, grpc::Status::OK);
      return;
    }
    if (!ok) return finish(call, grpc::Status::OK);
    std::string message = RpcStream::text_of(call.pump.read_buffer());
    call.pump.read_buffer().Clear();
    const std::string id = worker_id_of(message);
    if (id.empty()) {
      return finish(call, {grpc::StatusCode::INVALID_ARGUMENT, "the first message must be StartStream"});
    }
    // The id is on the worker's command line, where everybody can read it.
    const bool is_own = is_worker_user(call.context.peer());
    bool is_awaited = false;
    {
      const std::lock_guard lock{mutex};
      is_awaited = is_own && id == expected && !is_closing;
    }
    // Others of our user may run here: functions of another agent, and what they left behind.
    const bool is_child = is_awaited && is_worker_process(call.context.peer());
    {
      const std::lock_guard lock{mutex};
      if (is_child && id == expected && !is_closing) {
        expected.clear();  // one stream each
        attached = id;
        is_over_told = false;
        call.state = ServerCall::State::Ours;
        ours = *std::ranges::find(calls, &call, &std::shared_ptr<ServerCall>::get);
      }
    }
    if (call.state != ServerCall::State::Ours) {
      return finish(call, {grpc::StatusCode::PERMISSION_DENIED, "this worker id is not expected here"});
    }
    call.pump.deliver(std::move(message));
    call.pump.start_reading();
  }

  // True too where the system tells nothing of sockets.
  bool is_worker_user(const std::string& peer) const {
    const auto owner = socket_owner(peer, static_cast<std::uint16_t>(port));
    return owner ? owner->user == options.worker_user.value_or(::geteuid()) : !tells_of_sockets();
  }

  // The process is told of a moment after it began. Where we may not look at it, it counts as a stranger,
  // unless its user is another than ours: then is_own has told it from our other processes, and those of its
  // own user could take it over anyway.
  bool is_worker_process(const std::string& peer) const {
    if (!options.worker_process) return true;
    const auto owner = socket_owner(peer, static_cast<std::uint16_t>(port));
    if (!owner) return !tells_of_sockets();
    const bool is_another_user = options.worker_user.value_or(::geteuid()) != ::geteuid();
    for (auto waited = std::chrono::milliseconds{0}; waited < kProcessWait; waited += kProcessPoll) {
      if (const int process = options.worker_process(); process != 0) {
        return holds_socket(process, owner->inode).value_or(is_another_user);
      }
      std::this_thread::sleep_for(kProcessPoll);
    }
    return false;
  }

  void finish(ServerCall& call, const grpc::Status& status) {
    {
      const std::lock_guard lock{mutex};
      if (call.state == ServerCall::State::Finishing) return;
      call.state = ServerCall::State::Finishing;
    }
    call.stream.Finish(status, &call.finished);
  }

  void forget(ServerCall& call) {
    const std::lock_guard lock{mutex};
    calls.remove_if([&](const auto& each) { return each.get() == &call; });
    shut_down_if_last();
  }

  // With mutex held. A queue that is shut down takes no operation, not even the one that ends a call.
  void shut_down_if_last() {
    if (is_server_down && calls.empty()) queue->Shutdown();
  }

  // One whose reading pauses has no operation that would tell of the end.
  void end(ServerCall& call) {
    call.context.TryCancel();
    if (call.pump.end()) finish(call, grpc::Status::CANCELLED);
  }

  std::shared_ptr<ServerCall> current() {
    const std::lock_guard lock{mutex};
    return ours;
  }
};

Result<std::unique_ptr<FunctionRpcServer>> FunctionRpcServer::listen(const RpcServerOptions& options,
                                                                     std::function<void()> wake) {
  auto inside = std::make_unique<Inside>();
  inside->options = options;
  inside->wake = std::move(wake);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &inside->port);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  builder.SetMaxSendMessageSize(static_cast<int>(options.message_bytes_max));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterAsyncGenericService(&inside->service);
  inside->queue = builder.AddCompletionQueue();
  inside->server = builder.BuildAndStart();
  if (!inside->server || inside->port == 0) {
    // The queue must not outlive an unfinished start.
    inside->queue->Shutdown();
    return Error{
        ErrorCode::Internal, Blame::Local,
        "no port of 127.0.0.1 can be listened on for the language worker; see what keeps the loopback"};
  }
  {
    const std::lock_guard lock{inside->mutex};
    inside->accept();
  }
  inside->thread = std::thread{[raw = inside.get()] { raw->serve(); }};
  return std::unique_ptr<FunctionRpcServer>{new FunctionRpcServer{std::move(inside)}};
}

FunctionRpcServer::FunctionRpcServer(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

FunctionRpcServer::~FunctionRpcServer() {
  expect({});
  {
    const std::lock_guard lock{inside_->mutex};
    inside_->is_closing = true;
    for (const auto& call : inside_->calls) {
      if (call->state != ServerCall::State::Awaited) call->context.TryCancel();
    }
  }
  inside_->server->Shutdown(std::chrono::system_clock::now());
  {
    const std::lock_guard lock{inside_->mutex};
    inside_->is_server_down = true;
    inside_->shut_down_if_last();
  }
  inside_->thread.join();
}

std::uint16_t FunctionRpcServer::port() const {
  return static_cast<std::uint16_t>(inside_->port);
}

void FunctionRpcServer::expect(const std::string& worker_id) {
  std::shared_ptr<ServerCall> before;
  {
    const std::lock_guard lock{inside_->mutex};
    inside_->expected = worker_id;
    inside_->is_over_told = true;
    before = std::exchange(inside_->ours, nullptr);
  }
  if (before) inside_->end(*before);
}

FunctionRpcServer::Polled FunctionRpcServer::poll() {
  Polled polled;
  std::shared_ptr<ServerCall> call;
  {
    const std::lock_guard lock{inside_->mutex};
    if (inside_->is_over_told) return polled;
    call = inside_->ours;
    polled.worker_id = inside_->attached;
  }
  // Asked first: what came before the end is taken with it.
  polled.is_over = call->pump.is_over();
  call->pump.take(polled.messages);
  if (polled.is_over) {
    polled.unwritten = call->pump.take_unwritten();
    const std::lock_guard lock{inside_->mutex};
    inside_->is_over_told = true;
    inside_->ours.reset();
  }
  return polled;
}

void FunctionRpcServer::consumed(std::size_t bytes) {
  if (const auto call = inside_->current()) call->pump.consumed(bytes);
}

bool FunctionRpcServer::send(std::string_view message) {
  const auto call = inside_->current();
  return call && call->pump.send(message);
}

void FunctionRpcServer::flush() {
  if (const auto call = inside_->current()) call->pump.flush();
}

bool FunctionRpcServer::is_full() const {
  const auto call = inside_->current();
  return call && call->pump.is_full();
}

std::size_t FunctionRpcServer::waiting_messages() const {
  const auto call = inside_->current();
  return call ? call->pump.waiting_messages() : 0;
}

}  // namespace windlass::agent
