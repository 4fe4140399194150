// windlass as a real process against a real admin listener: output for people and programs, exit codes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "protocol/crypto/text_encoding.h"
#include "scheduler/cli/json_value.h"
#include "tests/integration/scheduler/shell/admin_world.h"
#include "tests/support/certificates.h"

namespace windlass::testing {
namespace {

using Arguments = std::vector<std::string>;

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
  bool says(std::string_view text) const { return out.find(text) != std::string::npos; }
  bool complains(std::string_view text) const { return err.find(text) != std::string::npos; }
};

std::string read_all(const std::string& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

class Cli : public AdminWorld {
 protected:
  // While the program runs, so does the loop that serves it.
  Ran run(const Arguments& arguments, std::vector<std::string> environment = {}) {
    if (environment.empty()) environment = {std::string{"WINDLASS_ADMIN_TOKEN="} + kToken};
    if (http) environment.push_back("WINDLASS_ADMIN_URL=http://127.0.0.1:" + std::to_string(http->port()));
    std::vector<std::string> words{WINDLASS_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const std::string out = folder.file("out");
    const std::string err = folder.file("err");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = -1;
    EXPECT_EQ(::posix_spawn(&child, WINDLASS_PROGRAM, &actions, nullptr, pointers(words).data(),
                            pointers(environment).data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    EXPECT_TRUE(runner.run_until([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_all(out), read_all(err)};
  }

  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  }

  TemporaryFolder folder;
};

TEST_F(Cli, ListsWorkersForPeopleAndPrograms) {
  start();
  EXPECT_EQ(run({"workers"}).out, "no workers\n");
  const SessionRef session = open_worker("w1");
  open_worker("w2", "other");
  auto profile = std::make_shared<WorkerProfile>();
  profile->worker_name = "evil\x1b[2Jname";
  say(session, Registered{profile});
  const Ran people = run({"workers"});
  EXPECT_EQ(people.code, 0) << people.err;
  EXPECT_TRUE(people.says("TENANT"));
  EXPECT_TRUE(people.says("READY"));
  EXPECT_TRUE(people.says("evil?[2Jname"))
      << "nothing a worker says reaches the terminal as a control character";
  const Ran programs = run({"--json", "workers", "--tenant", "other"});
  const auto json = cli::Json::parse(programs.out);
  ASSERT_TRUE(json.has_value()) << programs.out;
  ASSERT_EQ(json->list("/workers").size(), 1U);
  EXPECT_EQ(json->list("/workers")[0].text("/id"), "w2");
}

TEST_F(Cli, FetchesEveryPage) {
  start();
  std::vector<Input> inputs;
  for (std::uint64_t i = 0; i < 1500; ++i) {
    SessionOpened opened;
    opened.session = {0, 10'000 + i};
    opened.worker = {TenantId{"acme"}, InstanceId{"w" + std::to_string(i)}};
    inputs.emplace_back(opened);
  }
  control->post_inputs(std::move(inputs));
  const Ran ran = run({"workers", "--json"});
  EXPECT_EQ(cli::Json::parse(ran.out)->list("/workers").size(), 1500U);
}

TEST_F(Cli, ShowsAndActsOnAWorker) {
  start();
  open_worker("w1");
  EXPECT_TRUE(run({"worker", "show", "acme/w1"}).says("192.0.2.1:1000"));
  const Ran drained = run({"drain", "acme/w1", "--reason", "new \"disk\"", "--deadline", "60"});
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_TRUE(image->rows.at("drain/acme/w1").find("new \\\"disk\\\"") != std::string::npos);
  EXPECT_EQ(run({"revoke", "acme/w1"}).code, 0);
  EXPECT_TRUE(image->rows.contains("revocation/acme/w1"));
  EXPECT_TRUE(image->rows.contains("denial/acme/w1"));
  EXPECT_TRUE(run({"denied"}).says("w1"));
  EXPECT_EQ(run({"allow", "acme/w1"}).code, 0);
  EXPECT_TRUE(run({"denied"}).says("nobody is kept out"));
  EXPECT_TRUE(run({"allow", "acme/w1"}).complains("is not revoked"));
  const Ran unknown = run({"drain", "acme/nobody"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_TRUE(unknown.complains("E.SESSION.UNKNOWN"));
}

TEST_F(Cli, SendsACommandAndWaitsForItsResult) {
  start();
  const SessionRef session = open_worker("w1");
  const Ran sent = run({"send", "acme/w1", "biz.echo", R"({"text":"hi"})", "--id", "c1"});
  EXPECT_EQ(sent.code, 0) << sent.err;
  EXPECT_EQ(sent.out, "accepted: acme/c1\n");
  EXPECT_TRUE(run({"commands", "--state", "sent"}).says("acme/c1"));

  say(session,
      Delivered{0, Message{{.type = "biz.result", .id = "r", .payload = R"({"n":42})", .corr = "c1"}}});
  const Ran again = run({"send", "acme/w1", "biz.echo", R"({"text":"hi"})", "--id", "c1", "--wait"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(again.says(R"({"n":42})")) << again.out;
  EXPECT_TRUE(run({"command", "acme/c1", "--json"}).says(R"("state":"done")"));

  const Ran late = run({"send", "acme/absent", "biz.echo", "{}", "--wait", "--wait-for", "1"});
  EXPECT_EQ(late.code, 1);
  EXPECT_TRUE(late.complains("no outcome yet"));
}

TEST_F(Cli, ReadsAPayloadFromAFile) {
  start();
  std::ofstream{folder.file("payload.json")} << R"({"from":"file"})";
  EXPECT_EQ(run({"send", "acme/w1", "biz.echo", "@" + folder.file("payload.json"), "--id", "c1"}).code, 0);
  EXPECT_TRUE(run({"command", "acme/c1"}).says(R"({"from":"file"})"));
}

TEST_F(Cli, ShowsTheFleetOnce) {
  start();
  open_worker("w1");
  const Ran ran = run({"top", "--once"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(ran.says("1 worker: 1 READY"));
  EXPECT_FALSE(ran.says("\x1b"));
}

TEST_F(Cli, ExitsWithTwoForWrongUsage) {
  start();
  for (const Arguments& wrong : std::vector<Arguments>{
           {},
           {"explode"},
           {"workers", "--colour"},
           {"worker"},
           {"drain", "acme"},
           {"drain", "acme/w1", "--deadline", "soon"},
           {"send", "acme/w1", "biz.echo", "not json"},
           {"send", "acme/w1", "biz.echo", "[1]"},
           {"send", "acme/w1", "biz.echo", "@/no/such/file"},
           {"commands", "--state", "lost"},
           {"completion", "fish"},
           {"--url", "ftp://x", "workers"},
           {"--url", "http://127.0.0.1:99999", "workers"},
           {"--token-file", "/no/such/file", "workers"},
       }) {
    const Ran ran = run(wrong);
    EXPECT_EQ(ran.code, 2) << ::testing::PrintToString(wrong) << ran.err;
    EXPECT_FALSE(ran.err.empty());
  }
}

TEST_F(Cli, ExitsWithThreeWhenNobodyAnswersAndOneWhenRefused) {
  const Ran unreachable = run({"--url", "http://127.0.0.1:1", "workers"});
  EXPECT_EQ(unreachable.code, 3);
  EXPECT_TRUE(unreachable.complains("http://127.0.0.1:1 cannot be reached"));
  start();
  const Ran stranger = run({"workers"}, {"WINDLASS_ADMIN_TOKEN=very-wrong"});
  EXPECT_EQ(stranger.code, 1);
  EXPECT_TRUE(stranger.complains("E.AUTH.INVALID_TOKEN"));
  EXPECT_FALSE(stranger.complains("very-wrong"));
  std::ofstream{folder.file("token")} << kToken << "\n";
  EXPECT_EQ(run({"workers", "--token-file", folder.file("token")}, {"A=b"}).code, 0);
}

TEST_F(Cli, MakesTokensThatAreKeptAsHashes) {
  const Ran ran = run({"token", "new", "--tenant", "acme", "--name", "laptop", "--json"});
  const auto json = cli::Json::parse(ran.out);
  ASSERT_TRUE(json.has_value()) << ran.out << ran.err;
  EXPECT_GE(json->text("/token").size(), 40U);
  EXPECT_EQ(json->text("/sha256"), hex_encode(view_of(sha256(json->text("/token")))));
  const std::string file = folder.file("token");
  const Ran hidden = run({"token", "new", "--tenant", "acme", "--out", file});
  EXPECT_TRUE(hidden.says("[[token]]\ntenant = \"acme\"\nsha256 = \""));
  std::string token = read_all(file);
  ASSERT_FALSE(token.empty());
  token.pop_back();
  EXPECT_FALSE(hidden.says(token));
  EXPECT_TRUE(hidden.says(hex_encode(view_of(sha256(token)))));
  struct stat facts {};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  EXPECT_EQ(run({"token", "new", "--tenant", "acme", "--out", file}).code, 2)
      << "a token that is there is not replaced";
}

TEST_F(Cli, MakesNoTokenOfWhichNobodyKnowsWhoseItIs) {
  const std::string file = folder.file("token");
  const Ran nobodys = run({"token", "new", "--out", file});
  EXPECT_EQ(nobodys.code, 2);
  EXPECT_TRUE(nobodys.complains("whose token is it? give --tenant")) << nobodys.err;
  EXPECT_EQ(run({"token", "new", "--name", "x"}).code, 2);
  EXPECT_EQ(run({"token", "new", "--admin"}).code, 2);
  EXPECT_EQ(run({"token", "new", "--admin", "--name", "ada", "--role", "runtime"}).code, 2);
  struct stat facts {};
  EXPECT_NE(::stat(file.c_str(), &facts), 0) << "nothing was made";
}

TEST_F(Cli, MakesCertificatesThatTlsTakes) {
  const std::string certs = folder.file("certs");
  ASSERT_EQ(run({"cert", "new", "--out", certs}).code, 0);
  const Ran second =
      run({"cert", "new", "--out", certs, "--name", "w1", "--san", "URI:windlass:w1", "--json"});
  EXPECT_EQ(cli::Json::parse(second.out)->text("/fingerprint").size(), 64U) << second.err;
  EXPECT_EQ(run({"cert", "new", "--out", certs}).code, 2) << "what is there is not replaced";
  EXPECT_EQ(run({"cert", "new", "--out", certs, "--force"}).code, 0);
  EXPECT_EQ(run({"cert", "new", "--out", certs, "--name", "x", "--san", "nonsense"}).code, 2);

  TlsServerOptions options;
  options.identity = {certs + "/scheduler.pem", certs + "/scheduler.key"};
  auto tls = TlsContext::server(options);
  ASSERT_TRUE(tls.has_value()) << tls.error().reason;
  http_options.tls = tls->get();
  start();
  const std::string url = "https://localhost:" + std::to_string(http->port());
  EXPECT_EQ(run({"--url", url, "--ca", certs + "/ca.pem", "workers"}).code, 0);
  EXPECT_EQ(run({"--url", url, "workers"}).code, 3) << "an authority that nobody vouched for";
  http.reset();
}

TEST_F(Cli, CompletesItsOwnWords) {
  const Ran bash = run({"completion", "bash"});
  EXPECT_EQ(bash.code, 0);
  for (const char* word : {"'worker show'", "--token-file", "complete -F _windlass windlass"}) {
    EXPECT_TRUE(bash.says(word)) << word;
  }
  EXPECT_TRUE(run({"completion", "zsh"}).says("bashcompinit"));
  std::ofstream{folder.file("try.sh")} << bash.out
                                       << "COMP_WORDS=(windlass worker s); COMP_CWORD=2; _windlass; echo "
                                          "\"${COMPREPLY[@]}\"\n";
  const std::string command = "bash " + folder.file("try.sh") + " > " + folder.file("tried");
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_all(folder.file("tried")), "show\n");
}

TEST_F(Cli, HasTheSchedulerCheckItsSettings) {
  std::ofstream{folder.file("fake")} << "#!/bin/sh\necho \"$@\"\nexit 2\n";
  ::chmod(folder.file("fake").c_str(), 0700);
  const Ran ran = run({"config", "check", "some.toml"}, {"WINDLASS_SCHEDULER=" + folder.file("fake")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "--check-config --config some.toml\n");
}

TEST_F(Cli, HelpsWithExamples) {
  const Ran ran = run({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.says("windlass send acme/worker-1 biz.echo"));
  EXPECT_TRUE(ran.says("Exit codes"));
}

}  // namespace
}  // namespace windlass::testing
