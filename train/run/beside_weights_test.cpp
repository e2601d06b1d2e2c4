#include "train/run/beside_weights.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

std::string names(const BesideWeights& beside) {
  std::string all;
  for (const auto& [name, text] : beside.files) all += (all.empty() ? "" : " ") + name;
  return all;
}

class BesideWeightsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"model", "tokenizer"}) fs::create_directories(directory_ / folder);
    for (const char* name :
         {"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
          "tokenizer.model", "added_tokens.json", "README.md", "LICENSE", "generation_config.json",
          "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "optimizer.pt",
          "model.gguf", "trainer_state.json", ".gitattributes"})
      directory_.file(std::string("model/") + name, name);
    directory_.file("model/manifest.json", "{\"strata_checkpoint\": 1}");
    fs::create_directories(directory_ / "model/.cache/huggingface");
  }
  TestDirectory directory_;
};

TEST_F(BesideWeightsTest, EverythingButWeightsAndTheRunsOwnFiles) {
  const BesideWeights beside = read_beside_weights(directory_ / "model", "");
  EXPECT_EQ(names(beside),
            "LICENSE README.md added_tokens.json chat_template.jinja generation_config.json "
            "tokenizer.json tokenizer.model tokenizer_config.json");
  EXPECT_EQ(beside.files.at("chat_template.jinja"), "chat_template.jinja");
  EXPECT_TRUE(beside.notes.empty());
}

TEST_F(BesideWeightsTest, WhatIsTooMuchLeavesRoomForOthers) {
  for (const char* name : {"a.pdf", "b.pdf", "c.pdf", "d.pdf"}) {
    directory_.file(std::string("model/") + name, "");
    fs::resize_file(directory_ / (std::string("model/") + name), 60 << 20);
  }
  const BesideWeights beside = read_beside_weights(directory_ / "model", "");
  EXPECT_EQ(beside.files.size(), 10u) << names(beside);  // two of these, and all small ones
}

TEST_F(BesideWeightsTest, WhatStaysBehindIsNamed) {
  fs::create_directories(directory_ / "model/onnx");
  directory_.file("model/two words.txt", "x");
  directory_.file("model/.env", "x");
  directory_.file("model/manifest.json", "{\"name\": \"my model\", \"version\": \"1.0\"}");
  directory_.file("model/large.txt", "");
  fs::resize_file(directory_ / "model/large.txt", (64 << 20) + 1);
  const BesideWeights beside = read_beside_weights(directory_ / "model", "");
  EXPECT_EQ(beside.files.size(), 8u);
  ASSERT_EQ(beside.notes.size(), 1u);
  for (const char* word : {"not copied to the output", "onnx (a folder)", "two words.txt (its name",
                           "large.txt (more than 64 MiB)", ".env (hidden)",
                           "manifest.json (each checkpoint has its own)"})
    EXPECT_NE(beside.notes[0].find(word), std::string::npos) << beside.notes[0];
}

TEST_F(BesideWeightsTest, NamedChatTemplatesStayInTheirFolder) {
  const std::string folder = "additional_chat_templates";
  fs::create_directories(directory_ / ("model/" + folder + "/deeper"));
  directory_.file("model/" + folder + "/tool_use.jinja", "{{ tools }}");
  directory_.file("model/" + folder + "/two words.jinja", "x");
  const BesideWeights beside = read_beside_weights(directory_ / "model", "");
  EXPECT_EQ(beside.files.size(), 9u);
  EXPECT_EQ(beside.files.at(folder + "/tool_use.jinja"), "{{ tools }}");
  ASSERT_EQ(beside.notes.size(), 1u);
  for (const std::string word : {"/deeper (a folder)", "/two words.jinja (its name"})
    EXPECT_NE(beside.notes[0].find(folder + word), std::string::npos) << beside.notes[0];
  const auto of_configuration = read_beside_weights(directory_ / "model/config.json", "");
  EXPECT_TRUE(of_configuration.files.contains(folder + "/tool_use.jinja"));
  fs::create_directories(directory_ / ("tokenizer/" + folder));
  directory_.file("tokenizer/" + folder + "/rag.jinja", "r");
  EXPECT_EQ(names(read_beside_weights(directory_ / "model", directory_ / "tokenizer")),
            "LICENSE README.md additional_chat_templates/rag.jinja generation_config.json");
}

TEST_F(BesideWeightsTest, BesideAConfigurationTheTokenizerAlone) {
  const BesideWeights beside = read_beside_weights(directory_ / "model/config.json", "");
  EXPECT_EQ(names(beside),
            "added_tokens.json chat_template.jinja tokenizer.json tokenizer.model "
            "tokenizer_config.json");
  EXPECT_EQ(names(read_beside_weights("gpt2-tiny", "")), "");
}

TEST_F(BesideWeightsTest, AnotherTokenizerTakesThePlaceOfTheModels) {
  directory_.file("tokenizer/vocab.json", "v");
  directory_.file("tokenizer/merges.txt", "m");
  directory_.file("tokenizer/README.md", "other");
  const BesideWeights beside = read_beside_weights(directory_ / "model", directory_ / "tokenizer");
  EXPECT_EQ(names(beside), "LICENSE README.md generation_config.json merges.txt vocab.json");
  EXPECT_EQ(beside.files.at("README.md"), "README.md");
  const std::string file = directory_.file("tokenizer/mine.json", "t");
  EXPECT_EQ(read_beside_weights(directory_ / "model", file).files.at("tokenizer.json"), "t");
}

}  // namespace
}  // namespace strata::train
