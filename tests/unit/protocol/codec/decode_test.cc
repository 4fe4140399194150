// Bad input, item by item: each has one code, one pointer, and leaves the decoder ready for the next message.
#include "protocol/codec/decode.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "protocol/base/limits.h"

namespace windlass {
namespace {

constexpr std::string_view kSender = R"("tenant":"acme","sender":{"role":"worker","id":"w-1"})";

std::string frame_text(std::string_view type, std::string_view payload, std::string_view more = "") {
  std::string text = R"({"type":")";
  text.append(type).append(R"(","id":"f-1","ts":"2026-11-16T08:00:00.000Z",)").append(kSender).append(more);
  return text.append(R"(,"payload":)").append(payload).append("}");
}

std::string business(std::string_view payload, std::string_view more = R"(,"seq":7)") {
  return frame_text("biz.job.run", payload, more);
}

std::string heartbeat(std::string_view metrics = R"({"inflight":1})", std::string_view more = "") {
  return frame_text("control.heartbeat",
                    std::string{R"({"healthy":true,"metrics":)"}.append(metrics).append("}"), more);
}

std::string binary(std::string_view envelope, std::string_view attachment) {
  std::string message;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) message += static_cast<char>(envelope.size() >> shift);
  return message.append(envelope).append(attachment);
}

class DecodeTest : public ::testing::Test {
 protected:
  const Frame* decode(std::string_view text, MessageKind kind = MessageKind::Text,
                      Expect expect = Expect::RevisionTwo) {
    message_ = text;  // an exact copy, so that a sanitizer sees any read beyond its end
    return decoder_.decode(message_, kind, expect);
  }
  // Refused as said, and the next good message is not affected.
  void expect_refused(std::string_view text, ErrorCode code, std::string_view pointer,
                      MessageKind kind = MessageKind::Text) {
    EXPECT_EQ(decode(text, kind), nullptr) << text.substr(0, 200);
    EXPECT_EQ(to_string(decoder_.violation().code), to_string(code)) << decoder_.violation().reason;
    EXPECT_EQ(decoder_.violation().pointer, pointer) << decoder_.violation().reason;
    EXPECT_FALSE(decoder_.violation().reason.empty());
    const Violation kept = decoder_.violation();
    EXPECT_NE(decode(heartbeat()), nullptr);
    EXPECT_EQ(decoder_.violation().pointer, kept.pointer);
  }

  Decoder decoder_;
  std::string message_;
};

TEST_F(DecodeTest, TextThatIsNotJsonIsRefused) {
  //= ENV-10
  for (const std::string_view text :
       {"", " ", "hello", "{", "}", "{}}", "[1,]", "{\"a\":1,}", "nul", "{\"a\" 1}", "\"unclosed", "01",
        "{'a':1}", "{}{}", "{} x", "/* */ {}"}) {
    expect_refused(text, ErrorCode::ProtoJson, "");
  }
}

TEST_F(DecodeTest, JsonThatIsNotAnObjectIsRefused) {
  for (const std::string_view text : {"1", "null", "\"text\"", "[]", "[{}]"}) {
    expect_refused(text, ErrorCode::ProtoSchema, "");
  }
}

TEST_F(DecodeTest, InvalidUtf8IsRefusedWhereverItStands) {
  //= ENV-10
  for (const std::string_view bytes :
       {"\xc3\x28", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    expect_refused(business(std::string{"{\"a\":\""}.append(bytes).append("\"}")), ErrorCode::ProtoJson, "");
    expect_refused(frame_text(std::string{"biz."}.append(bytes), "{}"), ErrorCode::ProtoJson, "");
  }
  expect_refused("\xef\xbb\xbf" + heartbeat(), ErrorCode::ProtoJson, "");
}

TEST_F(DecodeTest, EscapesThatNameNoCharacterAreRefused) {
  expect_refused(business(R"({"a":"\ud800"})"), ErrorCode::ProtoJson, "");
  expect_refused(business(R"({"a":"\udc00"})"), ErrorCode::ProtoJson, "");
  expect_refused(business(R"({"a":"\ud800\u0041"})"), ErrorCode::ProtoJson, "");
  EXPECT_NE(decode(business(R"({"a":"\ud83d\ude00 \u0000"})")), nullptr);
}

TEST_F(DecodeTest, NestingIsBoundedInOpaquePayloadsToo) {
  //= ENV-10
  const auto nested = [](std::size_t levels, std::string_view innermost = "1") {
    return business("{\"a\":" + std::string(levels, '[') + std::string{innermost} + std::string(levels, ']') +
                    "}");
  };
  constexpr std::size_t kEnvelopeAndPayload = 2;
  EXPECT_NE(decode(nested(limits::kNestingDepthMax - kEnvelopeAndPayload)), nullptr);
  expect_refused(nested(limits::kNestingDepthMax - kEnvelopeAndPayload + 1), ErrorCode::ProtoJson, "");
  for (const std::string_view empty : {"[]", "{}"}) {
    EXPECT_NE(decode(nested(limits::kNestingDepthMax - kEnvelopeAndPayload, empty)), nullptr)
        << "a value itself";
    expect_refused(nested(limits::kNestingDepthMax - kEnvelopeAndPayload + 1, empty), ErrorCode::ProtoJson,
                   "");
  }
  expect_refused(nested(100'000), ErrorCode::ProtoJson, "");
  expect_refused(std::string(500'000, '['), ErrorCode::ProtoJson, "");
}

TEST_F(DecodeTest, NumbersThatOverflowAreRefused) {
  //= ENV-10
  for (const std::string_view number : {"1e400", "-1e400", "18446744073709551616", "-9223372036854775809",
                                        "123456789012345678901234567890"}) {
    expect_refused(business(std::string{"{\"a\":"}.append(number).append("}")), ErrorCode::ProtoJson, "");
  }
  EXPECT_NE(decode(business(R"({"a":[18446744073709551615,-9223372036854775808,1e308,1e-400]})")), nullptr);
}

TEST_F(DecodeTest, IntegersBeyond2To53AreRefusedInTheEnvelope) {
  //= ENV-7
  EXPECT_NE(decode(business("{}", R"(,"seq":9007199254740991)")), nullptr);
  expect_refused(business("{}", R"(,"seq":9007199254740992)"), ErrorCode::ProtoSchema, "/seq");
  expect_refused(business("{}", R"(,"seq":18446744073709551615)"), ErrorCode::ProtoSchema, "/seq");
  expect_refused(business("{}", R"(,"seq":-1)"), ErrorCode::ProtoSchema, "/seq");
  expect_refused(business("{}", R"(,"seq":1.0)"), ErrorCode::ProtoSchema, "/seq");
  expect_refused(business("{}", R"(,"seq":1e3)"), ErrorCode::ProtoSchema, "/seq");
}

TEST_F(DecodeTest, WrongTypesAreNamedByTheirPlace) {
  //= ENV-2
  expect_refused(heartbeat("[]"), ErrorCode::ProtoSchema, "/payload/metrics");
  expect_refused(heartbeat(R"({"inflight":"1"})"), ErrorCode::ProtoSchema, "/payload/metrics/inflight");
  expect_refused(business("[]"), ErrorCode::ProtoSchema, "/payload");
  expect_refused(business("null"), ErrorCode::ProtoSchema, "/payload");
}

TEST_F(DecodeTest, UnknownFieldsAreRefusedByName) {
  //= ENV-1
  expect_refused(heartbeat(R"({"inflight":1})", R"(,"extra":1)"), ErrorCode::ProtoSchema, "/extra");
  expect_refused(business("{}", R"(,"seq":1,"a/b~c":{})"), ErrorCode::ProtoSchema, "/a~1b~0c");
  expect_refused(business("{}", R"(,"seq":1,"ack":{"soon":true})"), ErrorCode::ProtoSchema, "/ack/soon");
}

TEST_F(DecodeTest, DuplicateKeysAreRefusedInObjectsTheProtocolDefines) {
  //= ENV-8
  expect_refused(heartbeat(R"({"inflight":1})", R"(,"id":"f-2")"), ErrorCode::ProtoSchema, "/id");
  expect_refused(heartbeat(R"({"inflight":1,"inflight":1})"), ErrorCode::ProtoSchema,
                 "/payload/metrics/inflight");
  expect_refused(heartbeat(R"({"inflight":1,"x":1,"y":2,"x":1})"), ErrorCode::ProtoSchema,
                 "/payload/metrics/x");
  expect_refused(heartbeat(R"({"inflight":1,"x":1,"\u0078":1})"), ErrorCode::ProtoSchema,
                 "/payload/metrics/x");
  EXPECT_NE(decode(business(R"({"x":1,"x":1})")), nullptr) << "an opaque payload is its owner's affair";
  EXPECT_NE(decode(business("{}", R"(,"seq":1,"ext":{"x":1,"x":2})")), nullptr);
}

TEST_F(DecodeTest, AnIdThatNoAnswerMayQuoteIsNotHandedOn) {
  std::string text = heartbeat(R"({"inflight":1})");
  const std::size_t at = text.find(R"("id":")") + 6;
  text.insert(at, "na\xc3\xaf");
  ASSERT_EQ(decode(text), nullptr);
  //= ENV-5
  EXPECT_TRUE(decoder_.violation().frame_id.empty());
}

TEST_F(DecodeTest, AnOversizeMessageIsRefusedBeforeItIsParsed) {
  //= LIM-1, HSK-12
  const std::string large(limits::kFrameBytesMax + 1, '{');  // not JSON: parsing it would give another code
  expect_refused(large, ErrorCode::LimitFrame, "");
  decoder_.set_frame_bytes_max(limits::kFrameBytesBeforeAuthMax);
  expect_refused(large.substr(0, limits::kFrameBytesBeforeAuthMax + 1), ErrorCode::LimitFrame, "");
  expect_refused(large.substr(0, limits::kFrameBytesBeforeAuthMax), ErrorCode::ProtoJson, "");
}

TEST_F(DecodeTest, AFrameOfTheLargestSizeIsTaken) {
  //= LIM-1
  std::string text = business(R"({"a":")");
  text.resize(text.size() - 1);
  text.append(limits::kFrameBytesMax - text.size() - 3, 'x').append("\"}}");
  ASSERT_EQ(text.size(), limits::kFrameBytesMax);
  EXPECT_NE(decode(text), nullptr);
}

TEST_F(DecodeTest, SeqIsOnEveryBusinessFrameAndOnNoControlFrame) {
  //= ENV-4
  expect_refused(business("{}", ""), ErrorCode::ProtoSchema, "/seq");
  expect_refused(frame_text("ext.vendor.x", "{}"), ErrorCode::ProtoSchema, "/seq");
  expect_refused(heartbeat(R"({"inflight":1})", R"(,"seq":0)"), ErrorCode::ProtoSchema, "/seq");
  expect_refused(frame_text("control.unheard.of", "{}", R"(,"seq":0)"), ErrorCode::ProtoSchema, "/seq");
}

TEST_F(DecodeTest, MembersMayComeInAnyOrder) {
  const Frame* frame =
      decode(R"({"payload":{"metrics":{"x":{"a":1}, "inflight":2}},"seq":3,"type":"biz.a","ext":{"e":[{}]},)"
             R"("sender":{"id":"s","role":"runtime"},"tenant":"t","ts":"2026-11-16T08:00:00Z","id":"i"})");
  ASSERT_NE(frame, nullptr) << decoder_.violation().pointer;
  EXPECT_EQ(std::get<Data>(frame->body).payload, R"({"metrics":{"x":{"a":1}, "inflight":2}})");
  EXPECT_EQ(frame->ext, R"({"e":[{}]})");
  EXPECT_EQ(frame->sender_role, Role::Runtime);
  EXPECT_EQ(frame->seq, 3U);
}

TEST_F(DecodeTest, PayloadsAndExtensionsComeAsTheVeryBytesThatWereSent) {
  //= ENV-3, ENV-9
  for (const std::string_view payload :
       {R"({})", R"({ })", "{\n\t\"a\" : 1.000 , \"b\":[ ]\r\n}", R"({"\u0061":"\/é\u00e9","n":-0,"e":1E+2})",
        R"({"x":"}{][\"","y":[[],{},"]"]})"}) {
    for (const bool payload_last : {true, false}) {
      std::string text = business(payload, R"(,"seq":7,"ext":{"v" : [1 ,2]})");
      if (!payload_last) text.insert(text.size() - 1, " , \"corr\" : \"c\"");
      const Frame* frame = decode(text);
      ASSERT_NE(frame, nullptr) << text;
      EXPECT_EQ(std::get<Data>(frame->body).payload, payload);
      EXPECT_EQ(frame->ext, R"({"v" : [1 ,2]})");
    }
  }
}

TEST_F(DecodeTest, AnUnknownControlTypeIsCheckedAsAnEnvelopeOnly) {
  //= ENV-11
  const Frame* frame = decode(frame_text("control.teleport", R"({"a":1,"a":[]})"));
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(std::get<UnknownControl>(frame->body).type, "control.teleport");
  EXPECT_FALSE(frame->seq.has_value());
  expect_refused(frame_text("control.teleport", "[]"), ErrorCode::ProtoSchema, "/payload");
}

TEST_F(DecodeTest, TheViolationNamesTheFrameAsFarAsItCanBeRead) {
  expect_refused(business("{}", ""), ErrorCode::ProtoSchema, "/seq");
  EXPECT_EQ(decode(R"({"extra":1,"payload":{"id":"no"},"type":"control.ack","id":"f-9"})"), nullptr);
  EXPECT_EQ(decoder_.violation().frame_id, "f-9");
  EXPECT_EQ(decoder_.violation().frame_type, "control.ack");
  EXPECT_EQ(decode(R"({"type":7})"), nullptr);
  EXPECT_EQ(decoder_.violation().frame_id, "");
  EXPECT_EQ(decoder_.violation().frame_type, "");
  EXPECT_EQ(decode(R"({"id":")" + std::string(5000, 'x') + R"("})"), nullptr);
  EXPECT_EQ(decoder_.violation().frame_id, "") << "nothing that long is worth quoting";
  EXPECT_EQ(decode("{"), nullptr);
  EXPECT_EQ(decoder_.violation().frame_type, "");
}

TEST_F(DecodeTest, TimesAreReadWithTheirOffset) {
  //= ENV-6
  const auto ts = [&](std::string_view text) {
    std::string message = heartbeat();
    message.replace(message.find("2026-11-16T08:00:00.000Z"), 24, text);
    const Frame* frame = decode(message);
    return frame == nullptr ? std::string{decoder_.violation().pointer}
                            : std::to_string(frame->ts.time_since_epoch().count());
  };
  EXPECT_EQ(ts("1970-01-01T00:00:00Z"), "0");
  EXPECT_EQ(ts("1970-01-01T00:00:00.1Z"), "100");
  EXPECT_EQ(ts("1970-01-01T00:00:00.123456789Z"), "123");
  EXPECT_EQ(ts("1970-01-01T01:30:00.000000+01:30"), "0");
  EXPECT_EQ(ts("1969-12-31T18:00:00-06:00"), "0");
  EXPECT_EQ(ts("2024-02-29T12:00:00-00:00"), "1709208000000");
  EXPECT_EQ(ts("2023-02-29T12:00:00Z"), "1677672000000") << "1 March";
  EXPECT_EQ(ts("1970-01-01T00:00:60Z"), "60000");
  for (const std::string_view wrong :
       {"", "now", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01T00:00:00z", "1970-13-01T00:00:00Z",
        "1970-00-01T00:00:00Z", "1970-06-31T00:00:00Z", "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z",
        "1970-01-01T00:00:61Z", "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00+0100",
        "1970-01-01T00:00:00+24:00", "1970-01-01T00:00:00Z "}) {
    EXPECT_EQ(ts(wrong), "/ts") << wrong;
  }
}

TEST_F(DecodeTest, AnAttachmentIsTheBytesBehindTheEnvelope) {
  //= ATT-1, ATT-3
  const std::string_view bytes{"\x00\xff{\"not\":\"json\n", 15};
  const std::string message =
      binary(business(R"({"a":1})", R"(,"seq":0,"attachment":{"bytes":15,"type":"application/x"})"), bytes);
  const Frame* frame = decode(message, MessageKind::Binary);
  ASSERT_NE(frame, nullptr) << decoder_.violation().pointer << decoder_.violation().reason;
  const Data& data = std::get<Data>(frame->body);
  ASSERT_TRUE(data.attachment.has_value());
  EXPECT_EQ(data.attachment->bytes, bytes);
  EXPECT_EQ(data.attachment->type, "application/x");
  EXPECT_EQ(data.payload, R"({"a":1})");
  EXPECT_EQ(data.attachment->bytes.end(), std::string_view{message_}.end()) << "not copied";
}

TEST_F(DecodeTest, AnAttachmentThatDoesNotFitItsMessageIsRefused) {
  //= ATT-2
  const std::string with = business("{}", R"(,"seq":0,"attachment":{"bytes":3,"type":"x"})");
  expect_refused(with, ErrorCode::ProtoSchema, "/attachment");
  expect_refused(binary(with, "12"), ErrorCode::ProtoSchema, "/attachment/bytes", MessageKind::Binary);
  expect_refused(binary(with, "1234"), ErrorCode::ProtoSchema, "/attachment/bytes", MessageKind::Binary);
  expect_refused(binary(business("{}"), "123"), ErrorCode::ProtoSchema, "/attachment", MessageKind::Binary);
  expect_refused(binary(business("{}"), ""), ErrorCode::ProtoSchema, "/attachment", MessageKind::Binary);
  expect_refused(binary(heartbeat(R"({"inflight":1})", R"(,"attachment":{"bytes":3,"type":"x"})"), "123"),
                 ErrorCode::ProtoSchema, "/attachment", MessageKind::Binary);
}

TEST_F(DecodeTest, ABinaryMessageThatEndsBeforeItsEnvelopeIsRefused) {
  //= ATT-1
  const std::string whole = binary(business("{}", R"(,"seq":0,"attachment":{"bytes":0,"type":"x"})"), "");
  EXPECT_NE(decode(whole, MessageKind::Binary), nullptr);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_refused(whole.substr(0, size), ErrorCode::ProtoJson, "", MessageKind::Binary);
  }
  expect_refused(std::string{"\xff\xff\xff\xff{}", 6}, ErrorCode::ProtoJson, "", MessageKind::Binary);
  expect_refused(std::string(4, '\0'), ErrorCode::ProtoJson, "", MessageKind::Binary);
}

TEST_F(DecodeTest, LengthsAreCountedInCharactersAndBoundedByTheLimits) {
  //= ENV-5
  const auto reset = [](std::string_view reason) {
    return frame_text("control.reset",
                      std::string{R"({"code":"E.TIMEOUT","reason":")"}.append(reason).append("\"}"));
  };
  std::string snowmen;
  for (std::size_t i = 0; i < limits::kReasonBytesMax; ++i) snowmen += "\u2603";
  EXPECT_NE(decode(reset(snowmen)), nullptr);
  expect_refused(reset(snowmen + "x"), ErrorCode::ProtoSchema, "/payload/reason");
  const auto with_id = [](const std::string& id) {
    std::string text = heartbeat();
    return text.replace(text.find("f-1"), 3, id);
  };
  EXPECT_NE(decode(with_id(std::string(limits::kIdBytesMax, 'i'))), nullptr);
  expect_refused(with_id(std::string(limits::kIdBytesMax + 1, 'i')), ErrorCode::ProtoSchema, "/id");
  expect_refused(with_id(""), ErrorCode::ProtoSchema, "/id");
  expect_refused(with_id("\u00e9"), ErrorCode::ProtoSchema, "/id");
}

}  // namespace
}  // namespace windlass
