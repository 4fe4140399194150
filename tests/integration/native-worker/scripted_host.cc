#include "tests/integration/native-worker/scripted_host.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>

extern char** environ;

namespace windlass::native {
namespace {

enum HostTag : std::intptr_t { kAccepted = 1, kRead, kWritten, kFinished };

void* tag_of(HostTag tag) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(tag));
}

constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

ScriptedHost::ScriptedHost() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  service_.RequestCall(&context_, &stream_, queue_.get(), queue_.get(), tag_of(kAccepted));
  thread_ = std::thread([this] { serve(); });
}

ScriptedHost::~ScriptedHost() {
  if (worker_ > 0) {
    kill(worker_, SIGKILL);
    waitpid(worker_, nullptr, 0);
  }
  server_->Shutdown(std::chrono::system_clock::now());
  queue_->Shutdown();
  thread_.join();
}

void ScriptedHost::spawn(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"windlass-native-worker",
                                        "--host",
                                        "127.0.0.1",
                                        "--port",
                                        std::to_string(port_),
                                        "--workerId",
                                        "w.1",
                                        "--requestId",
                                        "r-1",
                                        "--grpcMaxMessageLength",
                                        "2147483647",
                                        "--functions-uri",
                                        "http://127.0.0.1:" + std::to_string(port_) + "/",
                                        "--functions-worker-id",
                                        "w.1",
                                        "--functions-request-id",
                                        "r-1",
                                        "--functions-grpc-max-message-length",
                                        "2147483647"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  spawn_with(std::move(arguments));
}

void ScriptedHost::spawn_with(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ASSERT_EQ(posix_spawn(&worker_, WINDLASS_NATIVE_WORKER, nullptr, nullptr, pointers.data(), environ), 0);
}

void ScriptedHost::serve() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    const std::lock_guard lock(mutex_);
    switch (static_cast<HostTag>(reinterpret_cast<std::intptr_t>(tag))) {
      case kAccepted:
        if (!ok) break;
        open_ = true;
        stream_.Read(&incoming_, tag_of(kRead));
        write_next_locked();
        break;
      case kRead: {
        if (!ok) {
          ended_ = true;
          break;
        }
        rpc::StreamingMessage message;
        grpc::ProtoBufferReader reader(&incoming_);
        EXPECT_TRUE(message.ParseFromZeroCopyStream(&reader));
        inbox_.push_back(std::move(message));
        stream_.Read(&incoming_, tag_of(kRead));
        break;
      }
      case kWritten:
        writing_ = false;
        if (ok) write_next_locked();
        break;
      case kFinished:
        break;
    }
    changed_.notify_all();
  }
}

void ScriptedHost::write_next_locked() {
  if (!open_ || writing_) return;
  if (!outbox_.empty()) {
    writing_ = true;
    stream_.Write(outbox_.front(), tag_of(kWritten));
    outbox_.pop_front();
  } else if (end_) {
    stream_.Finish(*end_, tag_of(kFinished));
    open_ = false;
  }
}

void ScriptedHost::send(const rpc::StreamingMessage& message) {
  send_bytes(message.SerializeAsString());
}

void ScriptedHost::send_bytes(const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  const grpc::Slice slice(bytes);
  outbox_.emplace_back(&slice, 1);
  write_next_locked();
}

void ScriptedHost::end_stream(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  end_ = status;
  write_next_locked();
}

std::optional<rpc::StreamingMessage> ScriptedHost::next() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kPatience, [this] { return !inbox_.empty() || ended_; });
  if (inbox_.empty()) return std::nullopt;
  rpc::StreamingMessage message = std::move(inbox_.front());
  inbox_.pop_front();
  return message;
}

std::optional<rpc::StreamingMessage> ScriptedHost::expect(rpc::StreamingMessage::ContentCase content) {
  while (auto message = next()) {
    if (message->has_rpc_log()) logs_.push_back(message->rpc_log());
    if (message->content_case() == content) return message;
  }
  return std::nullopt;
}

rpc::StreamingMessage ScriptedHost::ask(rpc::StreamingMessage message,
                                        rpc::StreamingMessage::ContentCase answer) {
  const std::string id = "ask-" + std::to_string(++requests_);
  message.set_request_id(id);
  send(message);
  auto answered = expect(answer);
  EXPECT_TRUE(answered.has_value());
  if (!answered) return {};
  EXPECT_EQ(answered->request_id(), id);
  return *answered;
}

std::optional<int> ScriptedHost::wait_for_exit() {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, worker_, 0));
  pollfd watched{process, POLLIN, 0};
  const int ready = poll(&watched, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count()));
  close(process);
  if (ready != 1) return std::nullopt;
  int status = 0;
  waitpid(worker_, &status, 0);
  worker_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace windlass::native
