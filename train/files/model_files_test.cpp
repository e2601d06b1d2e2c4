#include "train/files/model_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "train/files/convert.h"
#include "train/files/safetensors_header.h"

namespace strata::train {
namespace {

/// A file with the given fp32 tensors, all elements 1.
std::string small_file(const std::vector<TensorSpec>& specs) {
  std::string content = make_safetensors_header(specs, {});
  for (const TensorSpec& spec : specs) {
    const float one = 1;
    for (std::int64_t i = 0; i < checked_elements(spec.shape).value_or(0); ++i)
      content.append(reinterpret_cast<const char*>(&one), 4);
  }
  return content;
}

std::string index_of(const std::string& pairs) {
  return "{\"metadata\":{},\"weight_map\":{" + pairs + "}}";
}

std::string open_error(const std::string& path) {
  return message_of<DataError>([&] { const ModelFiles files(path); });
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(ModelFiles, OpensADirectoryAFileAndAnIndex) {
  const TestDirectory directory;
  directory.file("model-1.safetensors", small_file({{"a", DType::f32, {2}}}));
  directory.file("model-2.safetensors", small_file({{"b", DType::f32, {3}}}));
  const std::string index =
      directory.file("model.safetensors.index.json",
                     index_of(R"("b":"model-2.safetensors","a":"model-1.safetensors")"));
  for (const std::string& path : {directory.path(), index}) {
    const ModelFiles files(path);
    ASSERT_EQ(files.tensors().size(), 2u);
    EXPECT_EQ(files.at("b").shape_text(), "[3]");
    float value = 0;
    files.read("b", 2, 1, DType::f32, std::as_writable_bytes(std::span(&value, 1)));
    EXPECT_EQ(value, 1);
  }
  EXPECT_EQ(ModelFiles(directory / "model-1.safetensors").tensors().size(), 1u);
  EXPECT_TRUE(ModelFiles::has_weights(directory.path()));
}

TEST(ModelFiles, MissingThingsAreNamed) {
  const TestDirectory directory;
  EXPECT_FALSE(ModelFiles::has_weights(directory.path()));
  EXPECT_CONTAINS(open_error(directory / "none"), "none: no such model directory or file");
  EXPECT_CONTAINS(open_error(directory.path()),
                  "expected model.safetensors or model.safetensors.index.json, found neither");
  directory.file("pytorch_model.bin", "x");
  EXPECT_CONTAINS(open_error(directory.path()), "pickle");
  directory.file("model.safetensors", small_file({{"transformer.h.0.w", DType::f32, {2}}}));
  const ModelFiles files(directory.path());
  EXPECT_EQ(files.find("h.0.w"), nullptr);
  EXPECT_CONTAINS(message_of<DataError>([&] { (void)files.at("h.0.w"); }),
                  "misses tensor 'h.0.w'; it has 1 tensors, the closest is 'transformer.h.0.w'");
}

// Fault 26.
TEST(ModelFiles, AnIndexThatLiesIsRefused) {
  const TestDirectory directory;
  directory.file("s1.safetensors", small_file({{"a", DType::f32, {2}}, {"c", DType::f32, {1}}}));
  directory.file("s2.safetensors", small_file({{"b", DType::f32, {3}}}));
  const auto error_with = [&](const std::string& pairs) {
    directory.file("model.safetensors.index.json", index_of(pairs));
    return open_error(directory.path());
  };
  EXPECT_EQ(error_with(R"("a":"s1.safetensors","b":"s2.safetensors")"), "no error");
  EXPECT_CONTAINS(error_with(R"("a":"s3.safetensors")"), "s3.safetensors does not exist");
  EXPECT_CONTAINS(error_with(R"("x":"s1.safetensors")"),
                  "expected tensor 'x' in s1.safetensors, found nowhere");
  EXPECT_CONTAINS(error_with(R"("a":"s1.safetensors","b":"s1.safetensors","c":"s2.safetensors")"),
                  "expected tensor 'b' in s1.safetensors, found in ");
  EXPECT_CONTAINS(error_with(R"("a":"../s1.safetensors")"),
                  "not the name of a file in the index's folder");
  EXPECT_CONTAINS(error_with(R"("a":7)"), "weight_map.a: expected string, found integer 7");
  directory.file("s2.safetensors", small_file({{"b", DType::f32, {3}}, {"a", DType::f32, {1}}}));
  EXPECT_CONTAINS(error_with(R"("a":"s1.safetensors","b":"s2.safetensors")"),
                  "tensor 'a' is also in ");
}

TEST(ModelFiles, ATypeThatCannotBeReadIsRefusedByTheReadOnly) {
  const TestDirectory directory;
  const std::string json = R"({"q":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})";
  const std::uint64_t length = json.size();
  std::string content(8, '\0');
  std::memcpy(content.data(), &length, 8);
  directory.file("model.safetensors", content + json + "1234");
  const ModelFiles files(directory.path());
  std::vector<std::byte> out(16);
  EXPECT_CONTAINS(message_of<DataError>([&] { files.read("q", 0, 4, DType::f32, out); }),
                  "tensor 'q' has type F8_E4M3, which cannot be read as fp32");
}

TEST(ModelFiles, LargeTensorsPassThroughTheBuffer) {
  const std::int64_t n = 700'001;  // more than one buffer
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
  std::string stored(static_cast<std::size_t>(n * size_of(DType::bf16)), '\0');
  convert_elements(DType::f32, std::as_bytes(std::span(values)).data(), DType::bf16,
                   std::as_writable_bytes(std::span(stored)).data(), n);
  const TestDirectory directory;
  directory.file(
      "model.safetensors",
      make_safetensors_header(std::vector<TensorSpec>{{"w", DType::bf16, {n}}}, {}) + stored);
  std::vector<float> read(values.size() - 5);
  ModelFiles(directory.path())
      .read("w", 5, n - 5, DType::f32, std::as_writable_bytes(std::span(read)));
  EXPECT_TRUE(std::equal(read.begin(), read.end(), values.begin() + 5));
}

TEST(ModelFiles, AFileThatShrinksAfterTheCheckIsAnErrorWithTensorAndOffset) {
  const TestDirectory directory;
  const std::string path =
      directory.file("model.safetensors", small_file({{"a", DType::f32, {1000}}}));
  const ModelFiles files(directory.path());
  std::filesystem::resize_file(path, 4096 + 400);
  std::vector<std::byte> out(4000);
  EXPECT_EQ(
      message_of<IoError>([&] { files.read("a", 0, 1000, DType::f32, out); }),
      path + " at byte 4496: read of tensor 'a' failed: the file ends, 3600 more bytes expected");
}

std::string golden(const std::string& name) { return STRATA_GOLDEN "/" + name; }

std::vector<float> read_all(const ModelFiles& files, const std::string& name) {
  std::vector<float> values(static_cast<std::size_t>(files.at(name).elements()));
  files.read(name, 0, files.at(name).elements(), DType::f32,
             std::as_writable_bytes(std::span(values)));
  return values;
}

/// Checks folders that transformers wrote: the same weights whole and in shards.
TEST(ModelFiles, GoldenFoldersOpenAndShardsHoldTheSame) {
  for (const char* name :
       {"gpt2", "gpt2-bare", "llama3", "llama-linear", "qwen2", "qwen3", "mistral"})
    EXPECT_GT(ModelFiles(golden(name)).tensors().size(), 10u) << name;
  const ModelFiles whole(golden("llama"));
  const ModelFiles shards(golden("llama-sharded"));
  ASSERT_EQ(whole.tensors().size(), shards.tensors().size());
  for (const StoredTensor& tensor : whole.tensors()) {
    EXPECT_EQ(tensor.shape, shards.at(tensor.name).shape);
    EXPECT_EQ(read_all(whole, tensor.name), read_all(shards, tensor.name)) << tensor.name;
  }
}

TEST(ModelFiles, GoldenValuesReadAsTheirTypes) {
  const ModelFiles files(golden("gpt2/golden.safetensors"));
  EXPECT_EQ(files.at("input_ids").shape, (std::vector<std::int64_t>{2, 16}));
  double loss = 0;
  files.read("loss", 0, 1, DType::f64, std::as_writable_bytes(std::span(&loss, 1)));
  EXPECT_TRUE(loss > 4 && loss < 10) << loss;  // random weights; log 97 is 4.6
  EXPECT_EQ(read_all(files, "loss")[0], static_cast<float>(loss));
  std::vector<std::int32_t> ids(32);
  files.read("input_ids", 0, 32, DType::i32, std::as_writable_bytes(std::span(ids)));
  for (const std::int32_t id : ids) EXPECT_TRUE(id >= 0 && id < 97) << id;
}

}  // namespace
}  // namespace strata::train
