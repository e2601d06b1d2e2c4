#include "train/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

CheckpointLayout small_layout() {
  return CheckpointLayout({{"a", DType::f32, {2000}}}, {{"exp_avg.a", DType::f32, {2000}}},
                          {.block_bytes = 4096});
}

std::vector<BlockHash> some_hashes(const CheckpointLayout& layout) {
  std::vector<BlockHash> hashes;
  for (std::int64_t b = layout.blocks(); b-- > 0;)
    hashes.push_back({b, {static_cast<std::uint64_t>(b) * 0x9e3779b97f4a7c15U, ~0ULL - 5}});
  return hashes;
}

Manifest small_manifest() {
  const CheckpointLayout layout = small_layout();
  const std::vector<WholeFile> whole{
      {"config.json", "{}"}, {"trainer_state.json", "{\"a\": 1}"}, {"templates/tool_use", "t"}};
  return make_manifest(layout, 1000, {{"world", "2"}, {"quote \"", "line\n"}}, whole,
                       some_hashes(layout));
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

/// The message about a manifest with one change and a matching hash.
std::string refusal(const std::string& what, const std::string& by) {
  const std::string text = replaced(to_text(small_manifest()), what, by);
  const std::string body = text.substr(0, text.rfind(",\n"));
  return message_of<DataError>([&] { parse_manifest(seal_manifest(body), "m.json"); });
}

TEST(Manifest, ReadsBackWhatItWrote) {
  const Manifest manifest = small_manifest();
  const std::string text = to_text(manifest);
  const Manifest read = parse_manifest(text, "m.json");
  EXPECT_EQ(to_text(read), text);
  EXPECT_EQ(read.step, 1000);
  EXPECT_EQ(*read.find_fact("quote \""), "line\n");
  EXPECT_EQ(read.find_fact("none"), nullptr);
  ASSERT_EQ(read.block_files.size(), 2U);
  EXPECT_EQ(read.block_files[1].name, "optimizer.safetensors");
  ASSERT_EQ(read.block_files[1].blocks.size(), 3U);
  EXPECT_EQ(read.block_files[1].blocks[2], (Hash128{5 * 0x9e3779b97f4a7c15U, ~0ULL - 5}));
  EXPECT_EQ(read.find_whole_file("config.json")->size_bytes, 2);
  EXPECT_EQ(read.find_whole_file("templates/tool_use")->size_bytes, 1);
  EXPECT_EQ(read.total_bytes(), 2 * (4096 + 8000) + 2 + 8 + 1);
}

// Fault 18.
TEST(Manifest, EveryFlippedOrMissingByteIsRefused) {
  const std::string text = to_text(small_manifest());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const int bit : {0, 3, 5, 7}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_THROW(parse_manifest(damaged, "m.json"), DataError) << i << ' ' << bit;
    }
    EXPECT_THROW(parse_manifest(std::string_view(text).substr(0, i), "m.json"), DataError) << i;
  }
  EXPECT_THROW(parse_manifest(text + "\n", "m.json"), DataError);
  EXPECT_NE(message_of<DataError>([&] { parse_manifest("", "m.json"); }).find("m.json"),
            std::string::npos);
}

TEST(Manifest, WhatMakesNoSenseIsRefusedByName) {
  const std::vector<std::array<std::string, 3>> cases{
      {"\"strata_checkpoint\": 1", "\"strata_checkpoint\": 2", "format version 2"},
      {"\"step\": 1000", "\"step\": -1", "step"},
      {"\"step\": 1000", "\"steps\": 1000", "unknown key"},
      {"\"world\": \"2\"", "\"world\": 2", "facts.world"},
      {"\"block_bytes\": 4096", "\"block_bytes\": 4097", "power of two"},
      {"\"block_bytes\": 4096", "\"block_bytes\": 8192", "expected 2 hashes"},
      {"\"bytes\": 12096", "\"bytes\": 4096", "expected 1 hashes"},
      {"\"bytes\": 12096", "\"bytes\": 0", "block_files[0].bytes"},
      {"\"model.safetensors\"", "\"../model.safetensors\"", "same folder"},
      {"\"model.safetensors\"", "\"model.bin\"", ".safetensors"},
      {"\"model.safetensors\"", "\"optimizer.safetensors\"", "second file"},
      {"\"config.json\"", "\"x.safetensors\"", "belongs to block_files"},
      {"\"config.json\"", "\"manifest.json\"", "second file"},
      {"\"config.json\"", "\".config\"", "same folder"},
      {"\"model.safetensors\"", "\"a/model.safetensors\"", "without folder"},
      {"templates/tool_use", "/tool_use", "same folder"},
      {"templates/tool_use", "templates/", "same folder"},
      {"templates/tool_use", "../tool_use", "same folder"},
      {"templates/tool_use", "templates/..", "same folder"},
      {"templates/tool_use", "templates/a/b", "same folder"},
      {"templates/tool_use", "config.json/b", "has the name of a file"},
      {"templates/tool_use", "model.safetensors/b", "has the name of a file"},
      {"templates/tool_use", "manifest.json/b", "has the name of a file"},
      {"\"block_hashes\": \"f", "\"block_hashes\": \"g", "hexadecimal"},
      {"\"hash\": \"", "\"hash\": \"0", "32 hexadecimal"},
      {"\"facts\"", "\"step\": 1,\n  \"facts\"", "step"},
  };
  for (const auto& [what, by, expected] : cases) {
    const std::string message = refusal(what, by);
    EXPECT_NE(message.find(expected), std::string::npos) << by << "\n" << message;
    EXPECT_NE(message.find("m.json"), std::string::npos) << message;
  }
}

TEST(Manifest, IsStratasHoweverLittleIsLeft) {
  const std::string text = to_text(small_manifest());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_TRUE(is_manifest(std::string_view(text).substr(0, i))) << i;
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_TRUE(is_manifest(damaged)) << i;
  }
  EXPECT_TRUE(is_manifest(std::string(4096, '\0')));
  for (const char* foreign : {R"({"name": "my model", "version": "1.0"})", "{}", "[1, 2]\n"})
    EXPECT_FALSE(is_manifest(foreign)) << foreign;
}

TEST(Manifest, AllBlocksMustHaveBeenWrittenOnce) {
  const CheckpointLayout layout = small_layout();
  const auto message = [&](const std::vector<BlockHash>& hashes,
                           const std::vector<WholeFile>& whole = {}) {
    return message_of<InternalError>([&] { make_manifest(layout, 7, {}, whole, hashes); });
  };
  auto hashes = some_hashes(layout);
  hashes.erase(hashes.begin());
  EXPECT_EQ(message(hashes),
            "checkpoint of step 7: no rank wrote optimizer.safetensors bytes 8192 to 12096 (tensor "
            "'exp_avg.a' elements 1024 to 2000)");
  hashes = some_hashes(layout);
  hashes.push_back(hashes.front());
  EXPECT_NE(message(hashes).find("two ranks wrote"), std::string::npos);
  hashes = some_hashes(layout);
  hashes.push_back({99, {}});
  EXPECT_NE(message(hashes).find("no block 99"), std::string::npos);
  EXPECT_NE(message(some_hashes(layout), {{"a/b/c", ""}}).find("'a/b/c'"), std::string::npos);
  EXPECT_NE(message(some_hashes(layout), {{"model.safetensors", ""}}).find("name"),
            std::string::npos);
}

}  // namespace
}  // namespace strata::train
