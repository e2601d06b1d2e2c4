#include "train/data/tokenizer_tool.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "core/error.h"
#include "core/test_directory.h"
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

/// Stands in for the package `tokenizers`, which test machines may lack: token = byte + offset.
constexpr const char* kPackage = R"(
import json, time
__version__ = "test"
class Encoding:
    def __init__(self, ids): self.ids = ids
class Tokenizer:
    @staticmethod
    def from_file(path):
        t = Tokenizer()
        settings = json.load(open(path))
        t.offset, t.seconds = settings["offset"], settings.get("seconds", 0)
        return t
    def get_vocab(self, with_added_tokens=True): return {"last": self.offset + 255}
    def encode(self, text, add_special_tokens=True):
        time.sleep(self.seconds)
        return Encoding(([0] if add_special_tokens else []) + [b + self.offset for b in text.encode()])
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

  [[nodiscard]] std::vector<std::int32_t> encoded(const std::string& text, int offset) const {
    const TokenizerTool tool(
        directory_.file("tokenizer.json", "{\"offset\":" + std::to_string(offset) + "}"));
    const auto files = tool.encode_file(directory_.file("text.txt", text), directory_ / "cache");
    const auto source = open_token_files(files, 1 << 20);
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
  const TokenizerTool tool(directory_.file("tokenizer.json", R"({"offset":10})"));
  const std::string prompt = "h\xc3\xa9 \"x\"\n";
  const auto ids = tool.encode(prompt);
  ASSERT_EQ(ids.size(), prompt.size() + 1);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(tool.decode(ids), prompt);
}

TEST_F(TokenizerToolTest, TheCacheIsUsedUntilTextOrTokenizerChange) {
  const TokenizerTool tool(directory_.file("tokenizer.json", R"({"offset":1})"));
  const std::string text = directory_.file("text.txt", "abc");
  const auto first = tool.encode_file(text, directory_ / "cache");
  const auto written = std::filesystem::last_write_time(first.at(0));
  EXPECT_EQ(tool.encode_file(text, directory_ / "cache"), first);
  EXPECT_EQ(std::filesystem::last_write_time(first[0]), written);
  directory_.file("text.txt", "abd");
  EXPECT_NE(tool.encode_file(text, directory_ / "cache"), first);
  directory_.file("text.txt", "abc");
  directory_.file("tokenizer.json", R"({"offset":2})");
  EXPECT_NE(tool.encode_file(text, directory_ / "cache"), first);
  // A cached file that was truncated is made again.
  directory_.file("tokenizer.json", R"({"offset":1})");
  std::filesystem::resize_file(first[0], 1025);
  EXPECT_EQ(tool.encode_file(text, directory_ / "cache"), first);
  EXPECT_EQ(std::filesystem::file_size(first[0]), 1024u + 3 * 2);
}

TEST_F(TokenizerToolTest, RanksThatAskAtOnceAllGetTheFile) {
  const TokenizerTool tool(directory_.file("tokenizer.json", R"({"offset":1,"seconds":0.3})"));
  const std::string text = directory_.file("text.txt", std::string(100000, 'x'));
  std::vector<std::string> answers[4];
  std::vector<std::thread> ranks;
  for (auto& answer : answers)
    ranks.emplace_back([&] { answer = tool.encode_file(text, directory_ / "cache"); });
  for (std::thread& rank : ranks) rank.join();
  for (const auto& answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_EQ(open_token_files(answers[0], 256)->size(), 100000);
}

TEST_F(TokenizerToolTest, FaultyTextsAndTokenizersAreNamed) {
  const auto message = [&](const std::string& tokenizer, const std::string& text) {
    const TokenizerTool tool(tokenizer);
    return message_of<DataError>([&] { (void)tool.encode_file(text, directory_ / "cache"); });
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
}

TEST_F(TokenizerToolTest, SaysWhatToInstall) {
  const std::string tokenizer = directory_.file("tokenizer.json", "{}");
  const auto message = [&](const std::string& python) {
    const TokenizerTool tool(tokenizer, python);
    return message_of<HostError>([&] { (void)tool.encode("x"); });
  };
  EXPECT_NE(message("no-such-python").find("install python3"), std::string::npos);
  directory_.file("tokenizers.py", "raise ImportError('gone')");
  EXPECT_NE(message("python3").find(
                "python3: the Python package `tokenizers` is missing (gone); install it with "
                "`pip install tokenizers`"),
            std::string::npos)
      << message("python3");
}

}  // namespace
}  // namespace strata::train
