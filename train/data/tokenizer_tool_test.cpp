#include "train/data/tokenizer_tool.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "train/data/run_program.h"
#include "train/data/token_file.h"

namespace strata::train {
namespace {

TEST(RunProgram, PassesInputAndCollectsBothOutputs) {
  const ProgramResult result =
      run_program({"sh", "-c", "cat; echo \"$1\" >&2; exit 3", "sh", "a b"}, "text");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "text");
  EXPECT_EQ(result.errors, "a b\n");
}

TEST(RunProgram, SignalsAndMissingProgramsAreReported) {
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}, "").exit_code, 137);
  EXPECT_NE(message_of<HostError>([] {
              run_program({"no-such-program"}, "");
            }).find("cannot start no-such-program: No such file"),
            std::string::npos);
}

TEST(RunProgram, OutputIsHeardWhileTheProgramRuns) {
  std::vector<std::string> heard;
  const ProgramResult result =
      run_program({"sh", "-c", "echo a; sleep 0.3; echo b"}, "",
                  [&](std::string_view more) { heard.emplace_back(more); });
  EXPECT_EQ(result.output, "a\nb\n");
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard[0], "a\n");
}

/// Replaces the package `tokenizers`, which test machines may lack: token = byte + offset, and
/// "<end>" is token 1.
constexpr const char* kPackage = R"(
import json, os, time
__version__ = "test"
class Encoding:
    def __init__(self, ids):
        self.ids, self.tokens = ids, [str(i) for i in ids]
        self.offsets = [(i, i + 1) for i in range(len(ids))]
class Tokenizer:
    @staticmethod
    def from_file(path):
        t = Tokenizer()
        settings = json.load(open(path))
        t.offset, t.seconds = settings["offset"], settings.get("seconds", 0)
        open(os.path.dirname(path) + "/starts", "a").write("x")
        return t
    def no_truncation(self): pass
    def no_padding(self): pass
    def token_to_id(self, text): return 1 if text == "<end>" else None
    def id_to_token(self, id): return "<end>" if id == 1 else str(id)
    def get_vocab(self, with_added_tokens=True): return {"last": self.offset + 255}
    def encode(self, text, add_special_tokens=True):
        return Encoding(([0] if add_special_tokens else []) + [b + self.offset for b in text.encode()])
    def encode_batch(self, texts, add_special_tokens=True):
        time.sleep(self.seconds)
        return [self.encode(text, add_special_tokens) for text in texts]
    def decode(self, ids, skip_special_tokens=True):
        return bytes(i - self.offset for i in ids if i).decode("utf-8", "replace")
)";

class TokenizerToolTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      if (run_program({"python3", "-c", "pass"}, "").exit_code != 0)
        GTEST_SKIP() << "python3 fails";
    } catch (const HostError&) {
      GTEST_SKIP() << "no python3";
    }
    directory_.file("tokenizers.py", kPackage);
    ASSERT_EQ(::setenv("PYTHONPATH", directory_.path().c_str(), 1), 0);
    ASSERT_EQ(::setenv("PYTHONDONTWRITEBYTECODE", "1", 1), 0);
  }
  void TearDown() override { ::unsetenv("PYTHONPATH"); }

  [[nodiscard]] EncodedTexts encode(const std::string& tokenizer,
                                    const std::vector<std::string>& texts,
                                    std::int64_t vocabulary = 1 << 20) const {
    const TokenizerTool tool(tokenizer, directory_ / "cache");
    return parse_encoded_texts(tool.encode_texts(texts, vocabulary));
  }
  [[nodiscard]] std::vector<std::string> files_of(const std::string& text) const {
    return encode(directory_ / "tokenizer.json", {text}).texts.at(0).files;
  }
  [[nodiscard]] std::vector<std::int32_t> encoded(const std::string& text, int offset) const {
    directory_.file("tokenizer.json", "{\"offset\":" + std::to_string(offset) + "}");
    const auto source = open_token_files(files_of(directory_.file("text.txt", text)), 1 << 20);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(source->size()));
    source->read(0, ids);
    return ids;
  }

  TestDirectory directory_;
};

TEST_F(TokenizerToolTest, EncodesFilesNarrowAndWide) {
  EXPECT_EQ(encoded("ab", 1000), (std::vector<std::int32_t>{1097, 1098}));
  EXPECT_EQ(encoded("ab", 100000), (std::vector<std::int32_t>{100097, 100098}));
}

TEST_F(TokenizerToolTest, EncodesAndDecodesPrompts) {
  const TokenizerTool tool(directory_.file("tokenizer.json", R"({"offset":10})"),
                           directory_ / "cache");
  const std::string prompt = "h\xc3\xa9 \"x\"\n";
  const auto ids = tool.encode(prompt);
  ASSERT_EQ(ids.size(), prompt.size() + 1);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(tool.decode(ids), prompt);
}

TEST_F(TokenizerToolTest, TheCacheIsUsedUntilTextOrTokenizerChange) {
  directory_.file("tokenizer.json", R"({"offset":1})");
  const std::string text = directory_.file("text.txt", "abc");
  const auto first = files_of(text);
  const auto written = std::filesystem::last_write_time(first.at(0));
  EXPECT_EQ(files_of(text), first);
  EXPECT_EQ(std::filesystem::last_write_time(first[0]), written);
  directory_.file("text.txt", "abd");
  EXPECT_NE(files_of(text), first);
  directory_.file("text.txt", "abc");
  directory_.file("tokenizer.json", R"({"offset":2})");
  EXPECT_NE(files_of(text), first);
  // A truncated file in the cache is made again.
  directory_.file("tokenizer.json", R"({"offset":1})");
  std::filesystem::resize_file(first[0], 1025);
  EXPECT_EQ(files_of(text), first);
  EXPECT_EQ(std::filesystem::file_size(first[0]), 1024u + 3 * 2);
}

TEST_F(TokenizerToolTest, AllTextsAreEncodedByOneProcess) {
  const std::string tokenizer = directory_.file("tokenizer.json", R"({"offset":1})");
  std::vector<std::string> texts;
  for (int i = 0; i < 5; ++i)
    texts.push_back(directory_.file(std::to_string(i) + ".txt", std::string(i + 1u, 'a')));
  const EncodedTexts encoded = encode(tokenizer, texts);
  ASSERT_EQ(encoded.texts.size(), 5u);
  for (std::int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(encoded.texts[static_cast<std::size_t>(i)].tokens, i + 1);
  EXPECT_EQ(std::filesystem::file_size(directory_ / "starts"), 1u);
}

TEST_F(TokenizerToolTest, LongTextsComeInPiecesAndSayHowFarTheyAre) {
  const std::string tokenizer = directory_.file("tokenizer.json", R"({"offset":1,"seconds":0.6})");
  std::string text;
  while (text.size() < 1'300'000) text += "a line of text\nand another one\n";
  const TokenizerTool tool(tokenizer, directory_ / "cache");
  std::vector<EncodingProgress> heard;
  const std::string path = directory_.file("text.txt", text);
  const EncodedTexts encoded = parse_encoded_texts(tool.encode_texts(
      {path}, 1 << 20, [&](const EncodingProgress& progress) { heard.push_back(progress); }));
  EXPECT_EQ(encoded.texts[0].tokens, std::ssize(text));
  const auto source = open_token_files(encoded.texts[0].files, 1 << 20);
  std::vector<std::int32_t> ids(text.size());
  source->read(0, ids);
  for (std::size_t i = 0; i < text.size(); ++i) ASSERT_EQ(ids[i], text[i] + 1) << i;
  ASSERT_GE(heard.size(), 2u);
  EXPECT_EQ(heard[0].text, path);
  EXPECT_EQ(heard[0].size_bytes, std::ssize(text));
  EXPECT_LT(heard[0].tokens, heard[1].tokens);
  EXPECT_LE(heard[0].tokens, heard[0].bytes);
}

TEST_F(TokenizerToolTest, TheEndTokenIsTheTokenizersElseTheModels) {
  directory_.file("tokenizer.json", R"({"offset":1})");
  const std::string text = directory_.file("text.txt", "abc");
  const auto end = [&] { return encode(directory_.path(), {text}).end; };
  EXPECT_FALSE(end());
  directory_.file("config.json", R"({"eos_token_id": [9, 8]})");
  EXPECT_EQ(end()->id, 9);
  EXPECT_EQ(end()->from, directory_ / "config.json");
  directory_.file("tokenizer_config.json", R"({"eos_token": {"content": "<end>"}})");
  EXPECT_EQ(end()->id, 1);
  EXPECT_EQ(end()->text, "<end>");
  EXPECT_EQ(end()->from, directory_ / "tokenizer_config.json");
}

TEST_F(TokenizerToolTest, ProcessesThatAskAtOnceAllGetTheFile) {
  const std::string tokenizer = directory_.file("tokenizer.json", R"({"offset":1,"seconds":0.3})");
  const std::string text = directory_.file("text.txt", std::string(100000, 'x'));
  std::vector<std::string> answers[4];
  std::vector<std::thread> askers;
  for (auto& answer : answers) askers.emplace_back([&] { answer = files_of(text); });
  for (std::thread& asker : askers) asker.join();
  for (const auto& answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_EQ(open_token_files(answers[0], 256)->size(), 100000);
}

TEST_F(TokenizerToolTest, FaultyTextsAndTokenizersAreNamed) {
  const auto message = [&](const std::string& tokenizer, const std::string& text) {
    return message_of<DataError>([&] { (void)encode(tokenizer, {text}, 200); });
  };
  const std::string good = directory_.file("tokenizer.json", R"({"offset":1})");
  const std::string text = directory_.file("a.txt", "abc");
  EXPECT_EQ(message(good, directory_.file("b.txt", "ab\xff")),
            directory_ / "b.txt: not UTF-8 at byte 2 (invalid start byte); convert the text");
  EXPECT_EQ(message(good, directory_.file("e.txt", "")),
            directory_ / "e.txt: the data file is empty, expected text");
  EXPECT_EQ(message(good, directory_ / "none.txt"),
            directory_ / "none.txt: cannot read the text: No such file or directory");
  EXPECT_NE(message(directory_.file("t.json", "x"), text).find("t.json: not a tokenizer: "),
            std::string::npos);
  EXPECT_NE(message(good, directory_.file("v.txt", "a\nb\nc\xe2\x82\xac\n"))
                .find("v.txt:3: '227' is token 227, expected less"),
            std::string::npos)
      << message(good, directory_ / "v.txt");
  EXPECT_NE(message(directory_.path() + "/cache", text).find("no tokenizer.json, and none of"),
            std::string::npos);
}

TEST_F(TokenizerToolTest, ACacheThatCannotBeUsedNamesTheFlag) {
  directory_.file("tokenizer.json", R"({"offset":1})");
  const TokenizerTool tool(directory_ / "tokenizer.json", directory_.file("file", "") + "/cache");
  const std::string text = directory_.file("a.txt", "abc");
  EXPECT_NE(message_of<Error>([&] {
              (void)tool.encode_texts({text}, 256);
            }).find("name another folder with --token-cache DIR"),
            std::string::npos);
}

TEST_F(TokenizerToolTest, SaysWhatToInstall) {
  const std::string tokenizer = directory_.file("tokenizer.json", "{}");
  const auto message = [&](const std::string& python) {
    const TokenizerTool tool(tokenizer, directory_ / "cache", python);
    return message_of<HostError>([&] { (void)tool.encode("x"); });
  };
  EXPECT_NE(message("no-such-python").find("install python3"), std::string::npos);
  directory_.file("tokenizers.py", "raise ImportError('gone')");
  EXPECT_NE(
      message("python3").find("the Python package `tokenizers` is missing (gone); install it"),
      std::string::npos)
      << message("python3");
  EXPECT_NE(message("python3").find("-m pip install tokenizers`"), std::string::npos);
  EXPECT_EQ(message("python3").find("--python"), std::string::npos);
}

TEST_F(TokenizerToolTest, ATokenizerWithoutTokenizerJsonNeedsAPackage) {
  std::filesystem::create_directories(directory_ / "spm");
  directory_.file("spm/tokenizer.model", "\n\1");
  directory_.file("transformers.py", "raise ImportError('gone')");
  const TokenizerTool tool(directory_ / "spm", directory_ / "cache");
  const std::string message = message_of<HostError>([&] { (void)tool.encode("x"); });
  EXPECT_NE(message.find("spm: has tokenizer.model but no tokenizer.json"), std::string::npos);
  EXPECT_NE(message.find("-m pip install transformers sentencepiece protobuf`"), std::string::npos);
}

}  // namespace
}  // namespace strata::train
