#include "core/json.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json_writer.h"

namespace strata {
namespace {

JsonValue parse(std::string_view text, JsonOptions options = {}) {
  return parse_json(text, "f.json", options);
}

std::string error_of(std::string_view text, const JsonOptions& options = {}) {
  try {
    parse(text, options);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, ReadsEveryKindInFileOrder) {
  const JsonValue v = parse(R"({"b": [1, -2.5, "x\u00e9\n", true, null], "a": {}})");
  const auto members = v.members();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].first, "b");
  EXPECT_EQ(members[1].first, "a");
  const auto list = v.at("b").elements();
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0].as_integer(), 1);
  EXPECT_EQ(list[1].as_number(), -2.5);
  EXPECT_EQ(list[2].as_string(), "x\xc3\xa9\n");
  EXPECT_TRUE(list[3].as_boolean());
  EXPECT_TRUE(list[4].is(JsonKind::null));
  EXPECT_EQ(v.at("a").size(), 0);
  EXPECT_FALSE(v.find("c").has_value());
}

TEST(Json, IntegersAreExactAndLargeOnesAreReal) {
  EXPECT_EQ(parse("9223372036854775807").as_integer(), INT64_MAX);
  EXPECT_EQ(parse("-9223372036854775808").as_integer(), INT64_MIN);
  EXPECT_TRUE(parse("9223372036854775808").is(JsonKind::real));
  EXPECT_EQ(parse("5e8").as_whole_number(), 500000000);
  EXPECT_THROW((void)parse("9223372036854775808").as_whole_number(), DataError);
  EXPECT_THROW((void)parse("0.5").as_whole_number(), DataError);
}

TEST(Json, WrongKindNamesFileLinePathFoundAndExpected) {
  const JsonValue v = parse("{\n \"a\": [0,\n {\"b c\": \"two\"}]}");
  const JsonValue two = v.at("a").elements()[1].at("b c");
  try {
    (void)two.as_integer();
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "f.json:3: a[1][\"b c\"]: expected integer, found string \"two\"");
  }
  try {
    (void)v.at("missing");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "f.json:1: top level: misses the key \"missing\"");
  }
}

TEST(Json, FaultsAreOfTheClassAskedFor) {
  JsonOptions options;
  options.fault = JsonFault::configuration;
  EXPECT_THROW(parse("{", options), ConfigError);
  EXPECT_THROW((void)parse("1", options).as_string(), ConfigError);
}

TEST(Json, DuplicateKeysAreAllNamedWithLines) {
  EXPECT_EQ(error_of("{\"a\":1,\n\"o\":{\"x\":1,\n\"x\":2},\n\"a\":2,\"a\":3}"),
            "f.json:2: o.x is given 2 times (lines 2, 3); a is given 3 times (lines 1, 4, 4)");
  EXPECT_EQ(error_of("{\"a\":1,\"\\u0061\":2}"), "f.json:1: a is given 2 times (lines 1, 1)");
}

TEST(Json, CommentsAndTrailingCommasOnlyWhereAllowed) {
  const std::string text = "// c\n# d\n{ /* e\n */ \"a\": [1, 2, ], # f\n \"b\": 3, } // g";
  EXPECT_EQ(error_of(text), "f.json:1: comments are not allowed in this file");
  EXPECT_EQ(error_of("[1,\n]"), "f.json:2: a comma before ']' is not allowed");
  JsonOptions options;
  options.allow_comments = options.allow_trailing_commas = true;
  const JsonValue v = parse(text, options);
  EXPECT_EQ(v.at("a").size(), 2);
  EXPECT_EQ(v.at("b").as_integer(), 3);
  EXPECT_EQ(v.at("b").line(), 5);
  EXPECT_EQ(error_of("[1, /* ", options), "f.json:1: the comment that begins here does not end");
  EXPECT_NE(error_of("[,]", options), "no error");
  EXPECT_NE(error_of("[1,,]", options), "no error");
}

TEST(Json, RefusesWhatTheStandardRefuses) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "[1",
                           "[1 2]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "{'a':1}",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "+1",
                           "1e",
                           "1e+",
                           "0x1",
                           "NaN",
                           "-Infinity",
                           "tru",
                           "nul",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\t\"",
                           "\"\n\"",
                           "1 2",
                           "[1]]",
                           "1e999",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "\"\xe2\x82\"",
                           "\xef\xbb\xbf{}",
                           "\"\\",
                           "\"\\u12",
                           "{\"a\":1,}",
                           "[\v1]"})
    EXPECT_NE(error_of(text), "no error") << text;
  EXPECT_NE(error_of(std::string_view("[1\0]", 4)), "no error");
}

TEST(Json, WordsOfPythonAreNamedWithTheirSpellingInJson) {
  EXPECT_EQ(error_of("{\"a\": True}"),
            "f.json:1: expected a value, found True, which JSON spells true");
  EXPECT_EQ(error_of("[\nFalse]"),
            "f.json:2: expected a value, found False, which JSON spells false");
  EXPECT_EQ(error_of("None"), "f.json:1: expected a value, found None, which JSON spells null");
  EXPECT_EQ(error_of("[Tru]"), "f.json:1: expected a value, found \"T\"");
}

TEST(Json, DepthAndSizeAreLimited) {
  EXPECT_NO_THROW(parse(std::string(64, '[') + std::string(64, ']')));
  EXPECT_EQ(error_of(std::string(65, '[') + std::string(65, ']')),
            "f.json:1: nested deeper than 64 levels");
  JsonOptions options;
  options.size_limit_bytes = 4;
  EXPECT_EQ(error_of("[1,2]", options),
            "f.json:1: the document has 5 bytes, more than the limit of 4");
}

TEST(Json, SurrogatePairsBecomeOneCharacter) {
  EXPECT_EQ(parse("\"\\ud83d\\ude00\"").as_string(), "\xf0\x9f\x98\x80");
}

TEST(Json, ADocumentOutlivesItsRoot) {
  const JsonValue inner = [] { return parse("{\"a\":{\"b\":7}}").at("a").at("b"); }();
  EXPECT_EQ(inner.as_integer(), 7);
  EXPECT_EQ(inner.path(), "a.b");
}

TEST(JsonWriter, WritesNumbersThatReadBackEqual) {
  for (const double value : {0.0, 1.0, 0.1, 1e-300, 5e8, -3.5, 1.7976931348623157e308, 5e-324}) {
    const JsonValue back = parse(json_number(value));
    EXPECT_TRUE(back.is(JsonKind::real)) << value;
    EXPECT_EQ(back.as_number(), value);
  }
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(1.0 / 0.0), "null");
}

TEST(JsonWriter, RoundTripsADocument) {
  const std::string text =
      R"({"a":[1,-2.5,"q\"\\\n\u0001",true,null,[],{}],"b":{"c":9223372036854775807}})";
  EXPECT_EQ(to_string(parse(text), 0), text);
  EXPECT_EQ(to_string(parse(to_string(parse(text), 2)), 0), text);
}

TEST(JsonWriter, IndentsAndKeepsOrder) {
  JsonWriter writer(2);
  writer.begin_object().member("z", 1).member("a", "x").key("list").begin_array();
  writer.value(true).value(0.5).end_array().member("none", std::string("\xff")).end_object();
  EXPECT_EQ(writer.finish(),
            "{\n  \"z\": 1,\n  \"a\": \"x\",\n  \"list\": [\n    true,\n    0.5\n  ],\n"
            "  \"none\": \"\xef\xbf\xbd\"\n}");
}

TEST(JsonFile, AMissingFileIsAFaultOfTheCallersClass) {
  JsonOptions options;
  options.fault = JsonFault::configuration;
  try {
    read_json_file("/no/such/file.json", options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/file.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace strata
