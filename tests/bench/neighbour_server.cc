#include "tests/bench/neighbour_server.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "protocol/adapters/socket.h"
#include "protocol/base/check.h"
#include "tests/bench/load_connection.h"

namespace windlass::bench {
namespace {

constexpr int kStartAttempts = 3;
constexpr int kStartWaitMs = 10'000;
constexpr int kPollMs = 10;
constexpr std::string_view kFolderBegin = "neighbour-";  // then the process that made it

std::string find_program(const NeighbourServer::Program& program) {
  const char* const path = std::getenv("PATH");
  // Debian's daemons may be where only root looks.
  std::string rest = std::string{path == nullptr ? "" : path} + ":/usr/sbin:/usr/local/sbin";
  while (!rest.empty()) {
    const std::string folder = rest.substr(0, rest.find(':'));
    rest.erase(0, folder.size() + 1);
    std::string file = folder + '/' + program.name;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  stop_bench(program.name + " is not installed: ./dev setup installs it (Debian's package " +
             program.package + ")");
}

Socket connect_now(std::uint16_t port) {
  auto socket = begin_connect(*numeric_address("127.0.0.1", port));
  CHECK(socket.has_value());
  pollfd waiting{socket->fd(), POLLOUT, 0};
  if (::poll(&waiting, 1, 1000) != 1 || connect_error(socket->fd()) != 0) return {};
  return std::move(*socket);
}

// Nobody listens on it at the moment; somebody else may be given it before the server is.
std::uint16_t free_port() {
  const auto listener = listen_on(*numeric_address("127.0.0.1", 0));
  CHECK(listener.has_value());
  return local_address(listener->fd()).port();
}

// Folders of benches that were killed, and could not take them away.
void remove_left_folders(const std::string& parent) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{parent, ignored}) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kFolderBegin)) continue;
    const pid_t owner = std::atoi(name.c_str() + kFolderBegin.size());
    if (::kill(owner, 0) != 0 && errno == ESRCH) std::filesystem::remove_all(entry.path(), ignored);
  }
}

std::string make_folder(const std::string& parent) {
  remove_left_folders(parent);
  std::string path = parent + '/' + std::string{kFolderBegin} + std::to_string(::getpid()) + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) stop_bench("cannot make a folder in " + parent);
  return path;
}

}  // namespace

NeighbourServer::NeighbourServer(const Program& program, const std::vector<std::string>& arguments,
                                 const std::string& parent_folder,
                                 const std::function<std::string(const Place&)>& configuration) {
  const std::string path = find_program(program);
  place_.folder = make_folder(parent_folder);
  std::vector<std::string> all = arguments;
  all.insert(all.begin(), program.name);
  all.push_back(place_.folder + "/server.conf");
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    place_.port = free_port();
    place_.second_port = free_port();
    std::ofstream{all.back()} << configuration(place_);
    start(path, all);
    if (accepts()) return;
  }
  stop_bench(program.name + " did not start: " + log_end());
}

NeighbourServer::~NeighbourServer() {
  // Nothing it keeps is wanted, so it need not say goodbye.
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(place_.folder, ignored);
}

double NeighbourServer::nanoseconds() const {
  clockid_t clock{};
  CHECK(::clock_getcpuclockid(child_, &clock) == 0);
  timespec spent{};
  CHECK(::clock_gettime(clock, &spent) == 0);
  return static_cast<double>(spent.tv_sec) * 1e9 + static_cast<double>(spent.tv_nsec);
}

void NeighbourServer::start(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<std::string> texts = arguments;
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& each : texts) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  const std::string log = place_.folder + "/server.log";
  const pid_t parent = ::getpid();
  child_ = ::fork();
  CHECK(child_ >= 0);
  if (child_ > 0) return;
  // Only system calls from here on: other threads of the bench may hold any lock. The death signal is lost if
  // the parent has gone before it was asked for, hence the second question.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv(path.c_str(), pointers.data());
  ::_exit(127);
}

// Waits until it accepts, or has ended.
bool NeighbourServer::accepts() {
  for (int waited = 0; waited < kStartWaitMs; waited += kPollMs) {
    if (has_ended()) return false;
    if (connect_now(place_.port).is_open()) return !has_ended();
    ::poll(nullptr, 0, kPollMs);
  }
  return false;
}

bool NeighbourServer::has_ended() {
  return child_ < 0 || (::waitpid(child_, nullptr, WNOHANG) == child_ && (child_ = -1, true));
}

std::string NeighbourServer::log_end() const {
  std::ifstream file{place_.folder + "/server.log"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  return text.size() > 1000 ? text.substr(text.size() - 1000) : text;
}

bool write_through(const std::string& folder) {
  const Socket handle{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  CHECK(handle.is_open());
  int flags = 0;
  if (::ioctl(handle.fd(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags |= FS_SYNC_FL;
  return ::ioctl(handle.fd(), FS_IOC_SETFLAGS, &flags) == 0;
}

std::string http_body(std::uint16_t port, std::string_view path) {
  const Socket socket = connect_now(port);
  if (!socket.is_open()) return {};
  const std::string request = "GET " + std::string{path} + " HTTP/1.0\r\n\r\n";
  static_cast<void>(write_some(socket.fd(), request));
  std::string answer;
  for (;;) {
    pollfd waiting{socket.fd(), POLLIN, 0};
    if (::poll(&waiting, 1, 5000) != 1) return {};
    std::array<char, 16384> part{};
    const IoResult got = read_some(socket.fd(), part);
    if (got.state == IoState::WouldBlock) continue;
    if (got.state != IoState::Done) break;
    answer.append(part.data(), got.bytes);
  }
  const std::size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? std::string{} : answer.substr(head + 4);
}

}  // namespace windlass::bench
