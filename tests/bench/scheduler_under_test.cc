#include "tests/bench/scheduler_under_test.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "protocol/base/check.h"
#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"

namespace windlass::bench {
namespace {

std::string quoted(const std::string& text) {
  return '"' + text + "\"\n";
}

std::uint16_t number_after(const std::string& line, std::string_view member) {
  const std::size_t at = line.find(member);
  CHECK(at != std::string::npos);
  return static_cast<std::uint16_t>(std::atoi(line.c_str() + at + member.size()));
}

}  // namespace

SchedulerUnderTest::SchedulerUnderTest(const Identity& identity, const std::string& store)
    : folder_(identity.authority.folder().path()) {
  std::remove((folder_ + "/log").c_str());
  write("credentials.toml",
        "[[token]]\ntenant = \"acme\"\nsha256 = " + quoted(hex_encode(view_of(sha256(kToken)))));
  write("admin-token", kAdminToken);
  const std::string identity_lines =
      "certificate = " + quoted(identity.files.certificate) + "key = " + quoted(identity.files.key);
  write("scheduler.toml", "[server]\nlisten = \"127.0.0.1:0\"\n[tls]\n" + identity_lines +
                              "[session]\ncredentials_file = " + quoted(folder_ + "/credentials.toml") +
                              "[store]\npath = " + quoted(store) + "[admin]\nlisten = \"127.0.0.1:0\"\n" +
                              identity_lines + "token_file = " + quoted(folder_ + "/admin-token") +
                              "[log]\nfile = " + quoted(folder_ + "/log"));
  process_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{WINDLASS_SCHEDULER, "--config", folder_ + "/scheduler.toml"});
  for (int i = 0; !read_ports(); ++i) {
    if (i == 1000) stop_bench("the scheduler did not start: " + process_->read_line());
    std::this_thread::sleep_for(milliseconds{10});
  }
}

void SchedulerUnderTest::write(const std::string& name, const std::string& text) const {
  std::ofstream{folder_ + '/' + name} << text;
  CHECK(::chmod((folder_ + '/' + name).c_str(), 0600) == 0);
}

bool SchedulerUnderTest::read_ports() {
  std::ifstream log{folder_ + "/log"};
  for (std::string line; std::getline(log, line);) {
    if (line.find("\"listening\"") == std::string::npos || !line.ends_with('}')) continue;
    port_ = number_after(line, "\"port\":");
    admin_port_ = number_after(line, "\"admin_port\":");
    return true;
  }
  return false;
}

}  // namespace windlass::bench
