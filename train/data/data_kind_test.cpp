#include "train/data/data_kind.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

using namespace std::string_literals;

class DataKind : public testing::Test {
 protected:
  /// The message of the refusal; "" if the file is accepted.
  std::string refusal(const std::string& name, const std::string& content, bool is_text = false) {
    const std::string path = directory_.file(name, content);
    try {
      require_plain_data(path, is_text);
    } catch (const DataError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
      return std::string(error.what()).substr(path.size());
    }
    return "";
  }
  TestDirectory directory_;
};

TEST_F(DataKind, TextAndTokensAreAccepted) {
  for (const char* name : {"a.txt", "a.md", "a", "a.py", "a.tex"})
    EXPECT_EQ(refusal(name, "Once upon a time\n{\"x\": 1}\n"), "") << name;
  EXPECT_EQ(refusal("a.txt", "{ x } [ 1 ]"), "");
  EXPECT_EQ(refusal("t.bin", "\0\1{\"\2"s), "");
  EXPECT_EQ(refusal("g.bin", "\x1f\x8b\x01\x00"s), "");  // two bytes are tokens as well
  EXPECT_TRUE(is_token_file("t.bin"));
  EXPECT_FALSE(is_token_file("t.bin.txt"));
}

TEST_F(DataKind, NamesOfOtherKindsAreRefusedUnlessTheUserInsists) {
  for (const char* name :
       {"a.jsonl", "a.json", "A.JSON", "a.csv", "a.tsv", "a.parquet", "a.arrow"}) {
    EXPECT_NE(refusal(name, "plain"), "") << name;
    EXPECT_NE(refusal(name, "plain").find("--data-is-text"), std::string::npos) << name;
    EXPECT_EQ(refusal(name, "plain", true), "") << name;
  }
  for (const char* name : {"a.gz", "a.zst", "a.npy", "a.idx", "a.zip", "a.pt", "a.gguf", "a.pdf"})
    for (const bool is_text : {false, true})
      EXPECT_NE(refusal(name, "plain", is_text).find("found a file named ."), std::string::npos)
          << name;
}

TEST_F(DataKind, ContentThatContradictsTheNameIsFound) {
  for (const std::string& content :
       {"PAR1xxxx"s, "ARROW1\0\0"s, "\x1f\x8b\x08 "s, "\x28\xb5\x2f\xfd "s, "PK\3\4 "s, "GGUF\3"s,
        "\x93NUMPY"s, "MMIDIDX\0\0"s, "%PDF-1.4"s})
    for (const bool is_text : {false, true})
      EXPECT_NE(refusal("a.txt", content, is_text).find("by its first bytes this is"),
                std::string::npos)
          << content;
  EXPECT_NE(refusal("t.bin", "PAR1xxxx").find("Parquet"), std::string::npos);
  for (const bool is_text : {false, true})
    EXPECT_NE(refusal("a.txt",
                      "\xff\xfe"
                      "a\0"s,
                      is_text)
                  .find("UTF-16"),
              std::string::npos);
  EXPECT_NE(refusal("a.txt", "abc\0d"s).find("byte 3 is 0"), std::string::npos);
}

TEST_F(DataKind, RecordsUnderTheNameOfATextAreRefusedUnlessTheUserInsists) {
  for (const char* content :
       {"{\"text\": \"a\"}\n{\"text\": \"b\"}\n", "  { \n \"a\": 1}", "[\n {\"text\": \"a\"}]"}) {
    EXPECT_NE(refusal("a.txt", content).find("begins like JSON"), std::string::npos) << content;
    EXPECT_EQ(refusal("a.txt", content, true), "") << content;
  }
}

TEST_F(DataKind, AByteOrderMarkHidesNoRecords) {
  EXPECT_NE(refusal("a", "\xef\xbb\xbf{\"text\": \"a\"}\n").find("begins like JSON"),
            std::string::npos);
  EXPECT_EQ(refusal("a.txt", "\xef\xbb\xbfOnce upon a time\n"), "");
}

/// A text longer than what is examined: `begin`, `element` many times, `end`.
std::string long_text(const std::string& begin, const std::string& element,
                      const std::string& end) {
  std::string text = begin;
  while (text.size() < 100'000) text += element;
  return text + end;
}

TEST_F(DataKind, ListsAndQuotedLinesAreRecordsToo) {
  for (const std::string& content :
       {"[\"a\", \"b\"]\r\n\r\n[\"c\"]\r\n"s, "\"one\"\n\"two \\n lines\"\n"s, "[[1, 2], [3]]"s,
        "\xef\xbb\xbf[1, 2]\n[3]\n"s, "\"one line\""s, "[\n  \"a\",\n  \"b\"\n]\n"s,
        long_text("[\"a\"", ", \"b, \\\"c\"", "]"), long_text("[\"", "words, words ", "\"]"),
        long_text("[\n", "[1, [2, {\"a\": 3}]],\n", "[4]]\n"),
        long_text("[1, 2]\n\"", "one two ", "\"\n"), long_text("", "\"word\"\n", "")}) {
    const std::string message = refusal("a.txt", content);
    EXPECT_NE(message.find("begins like JSON"), std::string::npos) << content.substr(0, 40);
    EXPECT_EQ(refusal("a.txt", content, true), "") << content.substr(0, 40);
  }
}

TEST_F(DataKind, ProseThatBeginsWithQuotationMarksOrBracketsIsAccepted) {
  for (const std::string& content :
       {"\"Hello,\" he said.\n"s, "\"Who is there?\"\n\nNobody answered.\n"s,
        "\"One.\"\n\"Two.\"\nHe counted.\n"s, "[Scene: a wood]\n[Enter two]\n"s,
        "[Link](https://a.b)\n"s, "[1] A note.\n"s, "[1]\nA note.\n"s, "[[Link]]\n"s,
        "\"\"\"A docstring.\"\"\"\n"s, "1\n2\n3\n"s, "true"s, "[\"a\", he said]\n"s,
        long_text("\"Hello,\" he said, ", "and went on, ", "\n"),
        long_text("\"One.\"\n\"Two.\"\n", "And so on, he said. ", "\n")})
    EXPECT_EQ(refusal("a.txt", content), "") << content.substr(0, 40);
}

TEST_F(DataKind, MissingEmptyAndFoldersAreNamed) {
  EXPECT_EQ(refusal("a.txt", ""), ": the data file is empty, expected text or tokens");
  EXPECT_NE(message_of<DataError>([&] {
              require_plain_data(directory_ / "none.txt", false);
            }).find("none.txt: cannot open: No such file"),
            std::string::npos);
  const auto folder = [&] {
    return message_of<DataError>([&] { require_plain_data(directory_.path(), false); });
  };
  EXPECT_NE(folder().find("/*.txt"), std::string::npos) << folder();
  directory_.file("dataset_info.json", "{}");
  EXPECT_NE(folder().find("Hugging Face's `datasets`"), std::string::npos) << folder();
}

TEST_F(DataKind, MegatronTokensThatAreNotUint16AreRefused) {
  const auto index = [](char type) {
    return "MMIDIDX\0\0"s + std::string(8, '\1') + type + "more";
  };
  directory_.file("m.idx", index(4));  // int32
  EXPECT_NE(refusal("m.bin", "\1\0\0\0"s).find("tokens of Megatron"), std::string::npos);
  directory_.file("m.idx", index(8));
  EXPECT_EQ(refusal("m.bin", "\1\0\0\0"s), "");
}

}  // namespace
}  // namespace strata::train
