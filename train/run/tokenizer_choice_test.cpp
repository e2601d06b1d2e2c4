#include "train/run/tokenizer_choice.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

class TokenizerChoice : public testing::Test {
 protected:
  /// Makes a model directory with these files.
  std::string model(std::initializer_list<const char*> files) {
    const std::string path = directory_ / std::to_string(models_++);
    std::filesystem::create_directories(path);
    for (const char* name : files)
      directory_.file(std::filesystem::path(path).filename().string() + "/" + name, "{}");
    return path;
  }
  TestDirectory directory_;
  int models_ = 0;
};

TEST_F(TokenizerChoice, TheModelsOwnWhateverItIsStoredAs) {
  for (const auto& files : {std::initializer_list<const char*>{"tokenizer.json"},
                            {"vocab.json", "merges.txt"},
                            {"vocab.txt"},
                            {"tokenizer.model"}}) {
    const std::string path = model(files);
    EXPECT_EQ(choose_tokenizer("", path, 50257), path);
    EXPECT_EQ(choose_tokenizer("", path, 256), path);
  }
  const std::string path = model({"config.json", "tokenizer.json"});
  EXPECT_EQ(choose_tokenizer("", path + "/config.json", 50257), path);
}

TEST_F(TokenizerChoice, BytesAreTokensOnlyWhereTheVocabularyIsBytesOrTheUserAsks) {
  EXPECT_EQ(choose_tokenizer("", "gpt2-tiny", 256), "");
  EXPECT_EQ(choose_tokenizer("bytes", "gpt2-124m", 50257), "");
  EXPECT_EQ(choose_tokenizer("bytes", model({"tokenizer.json"}), 50257), "");
  for (const std::string& without :
       {std::string("gpt2-124m"), model({"config.json"}), model({"vocab.json"})}) {
    const std::string message =
        message_of<InvalidArgument>([&] { (void)choose_tokenizer("", without, 50257); });
    EXPECT_NE(message.find("--model " + without + " has 50257 tokens and no tokenizer"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("--tokenizer DIR"), std::string::npos);
    EXPECT_NE(message.find("--tokenizer bytes"), std::string::npos);
  }
}

TEST_F(TokenizerChoice, AnotherOneIsNamed) {
  const std::string other = model({"tokenizer.json"});
  EXPECT_EQ(choose_tokenizer(other, "gpt2-124m", 50257), other);
  EXPECT_EQ(choose_tokenizer(other + "/tokenizer.json", model({"tokenizer.model"}), 9),
            other + "/tokenizer.json");
  for (const std::string& wrong : {std::string("nowhere"), model({"config.json"})})
    EXPECT_NE(message_of<InvalidArgument>([&] {
                (void)choose_tokenizer(wrong, "gpt2-tiny", 256);
              }).find("--tokenizer: found '" + wrong + "'"),
              std::string::npos);
}

}  // namespace
}  // namespace strata::train
