#include "worker-agent/core/command.h"

#include <gtest/gtest.h>

#include "worker-agent/core/result_text.h"

namespace windlass::agent {
namespace {

const std::vector<ExecRule> kRules{{.name = "backup",
                                    .program = "/usr/bin/backup",
                                    .args = {"--quiet"},
                                    .arg_patterns = {"[a-z]{1,8}", "daily|weekly"},
                                    .timeout = seconds{10},
                                    .output_bytes_max = 100}};

Command exec(std::string_view payload) {
  return parse_command(Message{{.type = kExec, .id = "c-1", .payload = payload}}, kRules);
}

std::string refusal_of(std::string_view payload) {
  const Command command = exec(payload);
  const auto* refusal = std::get_if<Refusal>(&command);
  return refusal == nullptr ? "" : std::string{to_string(refusal->code)} + " " + refusal->reason;
}

TEST(Command, AnExecRunsTheRulesProgramWithFixedArgumentsFirst) {
  const Command command = exec(R"({"name":"backup","args":["home","daily"],"timeout_ms":2000})");
  const auto* request = std::get_if<RunRequest>(&command);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->program, "/usr/bin/backup");
  EXPECT_EQ(request->args, (std::vector<std::string>{"--quiet", "home", "daily"}));
  EXPECT_EQ(request->timeout, seconds{2});
  EXPECT_EQ(request->id.value().size(), 64U);
}

TEST(Command, ACallerCannotAskForMoreTimeThanTheRuleGives) {
  const Command command = exec(R"({"name":"backup","args":["home","daily"],"timeout_ms":20000})");
  EXPECT_EQ(std::get<RunRequest>(command).timeout, seconds{10});
}

TEST(Command, WhatIsNotAllowedIsRefusedWithItsReason) {
  EXPECT_EQ(refusal_of(R"({"name":"rm"})"),
            "E.CMD.UNKNOWN no exec rule of this name is configured on this agent");
  EXPECT_EQ(refusal_of(R"({"name":"backup"})"), "E.PROTO.SCHEMA this exec rule takes 2 args, not 0");
  EXPECT_EQ(refusal_of(R"({"name":"backup","args":["home","hourly"]})"),
            "E.PROTO.SCHEMA args[1] does not match the pattern of this exec rule");
  EXPECT_EQ(refusal_of(R"({"name":"backup","args":["--delete","daily"]})"),
            "E.PROTO.SCHEMA args[0] does not match the pattern of this exec rule");
  EXPECT_EQ(refusal_of(R"({"name":"backup","args":["home; rm","daily"]})"),
            "E.PROTO.SCHEMA args[0] does not match the pattern of this exec rule");
  EXPECT_EQ(refusal_of(R"({"name":"backup","args":["a\u0000","daily"]})"),
            "E.PROTO.SCHEMA an argument may not contain a zero byte");
  EXPECT_EQ(refusal_of(R"({"name":"backup","args":"home"})"), "E.PROTO.SCHEMA args must be a list of texts");
  EXPECT_EQ(refusal_of(R"({"name":"backup","shell":true})"),
            "E.PROTO.SCHEMA biz.exec takes name, args and timeout_ms, nothing else");
  EXPECT_EQ(refusal_of(R"({"name":"backup","timeout_ms":0})"),
            "E.PROTO.SCHEMA timeout_ms must be a whole number from 1 to 86400000");
  EXPECT_EQ(refusal_of("{}"), "E.PROTO.SCHEMA name is missing: it names one of the agent's exec rules");
}

TEST(Command, AnUnknownTypeIsRefused) {
  const Command command = parse_command(Message{{.type = "biz.other", .id = "c", .payload = "{}"}}, kRules);
  EXPECT_EQ(std::get<Refusal>(command).code, ErrorCode::CmdUnknown);
}

TEST(Command, APatternThatIsNoneIsNoticed) {
  EXPECT_EQ(pattern_problem("[a-z]+"), "");
  EXPECT_NE(pattern_problem("[a-"), "");
  EXPECT_NE(pattern_problem("(a)\\1"), "");  // what RE2 has not, since its time could not be bounded
}

TEST(ResultText, AProgramsResultSaysExitCodeAndOutput) {
  EXPECT_EQ(outcome_text(
                {.end = RunEnd::Exited, .code = 3, .standard_output = "a\n", .took = milliseconds{7}}, 4096),
            R"({"ok":false,"exit_code":3,"stdout":"a\n","stderr":"","truncated":false,"duration_ms":7})");
}

TEST(ResultText, BytesThatAreNoTextAreReplaced) {
  const std::string text = outcome_text({.standard_output = "a\xFF\xC3\xA4\xE2\x82"}, 4096);
  EXPECT_NE(text.find("a\xEF\xBF\xBD\xC3\xA4\xEF\xBF\xBD\xEF\xBF\xBD\""), std::string::npos) << text;
}

TEST(ResultText, OutputThatEscapesWouldBlowUpIsShortened) {
  const std::string text = outcome_text(
      {.standard_output = std::string(60'000, '\x01'), .standard_error = std::string(60'000, '"')}, 65536);
  EXPECT_LE(text.size(), 65536U);
  EXPECT_NE(text.find(R"("truncated":true)"), std::string::npos);
}

TEST(Command, APatternTakesNoLongerThanItsArgument) {
  // With a matcher that tries all ways, this takes longer than anybody lives.
  const std::vector<ExecRule> rules{
      {.name = "slow", .program = "/bin/true", .args = {}, .arg_patterns = {"(a+)+b|(a|aa)+c|(.*a){25}d"}}};
  const std::string payload = R"({"name":"slow","args":[")" + std::string(kArgumentBytesMax, 'a') + R"("]})";
  const Command command = parse_command(Message{{.type = kExec, .id = "c-1", .payload = payload}}, rules);
  ASSERT_TRUE(std::holds_alternative<Refusal>(command));
  EXPECT_EQ(std::get<Refusal>(command).reason, "args[0] does not match the pattern of this exec rule");
}

}  // namespace
}  // namespace windlass::agent
