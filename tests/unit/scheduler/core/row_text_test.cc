#include "scheduler/core/row_text.h"

#include <gtest/gtest.h>

#include "protocol/base/limits.h"

namespace windlass {
namespace {

const WorkerKey kOddWorker{TenantId{"a/b%"}, InstanceId{"w 1~\"\\"}};

StoredMessage message() {
  return {"id/1", "corr", "biz.x", "{ \"k\" : \"\\u00e9\\ud83d\\ude00 \xc3\xa9\" }",
          StoredAttachment{"t/x", Bytes{"\0\x01\xff", 3}}};
}

template <class Record>
Record read_back(const std::string& key, const Record& record) {
  RowReader reader;
  auto read = reader.read({key, to_row_value(record)});
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().reason);
  if (!read) return {};
  EXPECT_TRUE(std::holds_alternative<Record>(*read));
  return std::get<Record>(*read);
}

TEST(RowText, ReadsBackEveryRecordAsItWas) {
  CommandRecord command{
      {kOddWorker.tenant, "c/%1"}, kOddWorker.instance, "biz.run",    "{\"a\": [1, 2.50]}", 7,
      WallTime{seconds{5}},        milliseconds{1500},  std::nullopt, std::nullopt,         {}};
  EXPECT_EQ(read_back(command_row(command.key), command), command);
  command.finished_at = WallTime{seconds{9}};
  command.result = message();
  EXPECT_EQ(read_back(command_row(command.key), command), command);
  command.result.reset();
  command.failure = Failure{ErrorCode::Timeout, "too \"late\"\n"};
  EXPECT_EQ(read_back(command_row(command.key), command), command);

  command.type = kInvokeType;
  for (const auto kind : {CommandTarget::Kind::Application, CommandTarget::Kind::Serving}) {
    command.target = {kind, "hello"};
    EXPECT_EQ(read_back(command_row(command.key), command), command);
  }

  InboxRecord inbox{kOddWorker, 3, WallTime{seconds{8}}, message()};
  EXPECT_EQ(read_back(message_row(kOddWorker, inbox.message.id, inbox.message.corr), inbox), inbox);
  inbox.session = "s/1";
  EXPECT_EQ(read_back(message_row(kOddWorker, inbox.message.id, inbox.message.corr, "s/1"), inbox), inbox);
  const Revocation revocation{kOddWorker, WallTime{seconds{4}}};
  EXPECT_EQ(read_back(revocation_row(kOddWorker), revocation), revocation);
  const DrainIntent drain{kOddWorker, "why\tnot", WallTime{seconds{4}}};
  EXPECT_EQ(read_back(drain_row(kOddWorker), drain), drain);
  EXPECT_EQ(read_back(std::string{kIssuedRow}, IssuedUntil{WallTime{seconds{4}}}).at, WallTime{seconds{4}});
  EXPECT_EQ(read_back(std::string{kProbeRow}, StoreProbe{12}).failures, 12U);
}

TEST(RowText, EscapesPartsSoThatKeysOfTwoRecordsDiffer) {
  EXPECT_EQ(command_row({TenantId{"a/b"}, "c"}), "command/a%2fb/c");
  EXPECT_NE(command_row({TenantId{"a/b"}, "c"}), command_row({TenantId{"a"}, "b/c"}));
  EXPECT_NE(command_row({TenantId{"a%2fb"}, "c"}), command_row({TenantId{"a/b"}, "c"}));
  EXPECT_NE(message_row(kOddWorker, "x", "y/z"), message_row(kOddWorker, "x/y", "z"));
  EXPECT_NE(message_row(kOddWorker, "x", ""), message_row(kOddWorker, "", "x"));
}

TEST(RowText, RefusesWhatItDidNotWriteAndNamesTheRow) {
  RowReader reader;
  const std::string good = to_row_value(CommandRecord{});
  const Row bad[] = {
      {"nonsense", "{}"},
      {"unknown/a/b", "{}"},
      {"command/a", good},
      {"command/a/b/c", good},
      {"command/a/b%zz", good},
      {"command/a/b%2", good},
      {"command/a/b", ""},
      {"command/a/b", "[]"},
      {"command/a/b", "{"},
      {"command/a/b", "{}"},
      {"command/a/b",
       R"({"number":-1,"worker":"w","type":"t","payload":"{}","created_ms":1,"timeout_ms":1})"},
      {"command/a/b", R"({"number":1,"worker":3,"type":"t","payload":"{}","created_ms":1,"timeout_ms":1})"},
      {"command/a/b",
       R"({"number":1,"worker":"w","type":"t","payload":"{}","created_ms":1,"timeout_ms":1,"result":{}})"},
      {"command/a/b",
       R"({"number":1,"worker":"w","type":"t","payload":"{}","created_ms":1,"timeout_ms":1,"failure":{"code":"E.NEW","reason":""},"finished_ms":1})"},
      {"message/a/b/c/d",
       R"({"number":1,"received_ms":1,"id":"c","type":"t","payload":"{}","attachment":{"type":"t","base64url":"*"}})"},
      {"revocation/a/b", R"({"until_ms":"soon"})"},
      {"meta/issued_until", "{}"},
  };
  for (const Row& row : bad) {
    const auto read = reader.read(row);
    ASSERT_FALSE(read.has_value()) << row.key << " " << row.value;
    EXPECT_EQ(read.error().code, ErrorCode::StoreInvalid);
    EXPECT_NE(read.error().reason.find("'" + row.key + "'"), std::string::npos) << read.error().reason;
  }
}

std::string nested(std::size_t depth) {
  std::string text = R"({"a":1})";
  for (std::size_t i = 1; i < depth; ++i) text = R"({"a":)" + text + "}";
  return text;
}

TEST(RowText, TakesForAPayloadOneObjectThatFitsAFrame) {
  RowReader reader;
  for (const std::string text : {"{}", R"( {"a":[1,2,{"b":null}]} )"})
    EXPECT_TRUE(reader.is_payload(text)) << text;
  for (const std::string text :
       {"", "1", "[]", "{", "{}{}", R"({"a":01})", "{\"a\":\"\xff\"}", R"({"a":"\ud800"})"}) {
    EXPECT_FALSE(reader.is_payload(text)) << text;
  }
  EXPECT_TRUE(reader.is_payload(nested(limits::kNestingDepthMax - 1)));
  EXPECT_FALSE(reader.is_payload(nested(limits::kNestingDepthMax)));
  EXPECT_TRUE(reader.is_payload(R"({"a":")" + std::string(500'000, 'x') + R"("})"));
  EXPECT_FALSE(reader.is_payload(nested(limits::kNestingDepthMax))) << "also after a large one";
}

}  // namespace
}  // namespace windlass
