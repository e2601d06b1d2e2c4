#include "train/files/model_files_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "core/json.h"
#include "core/test_directory.h"
#include "train/files/model_files.h"

namespace strata::train {
namespace {

const std::vector<TensorSpec> kSpecs = {{"model.embed.weight", DType::f32, {100, 7}},
                                        {"model.norm.weight", DType::bf16, {33}},
                                        {"empty", DType::f32, {0, 4}},
                                        {"scalar", DType::f16, {}},
                                        {"head.weight", DType::f32, {7, 100}}};

float value_at(std::size_t tensor, std::int64_t element) {
  return static_cast<float>(tensor * 1000) + static_cast<float>(element) * 0.25F;
}

/// One rank of `world`: writes its contiguous part of each tensor, in fp32.
void write_as_rank(ModelFilesWriter& writer, int rank, int world) {
  for (std::size_t t = 0; t < writer.tensors().size(); ++t) {
    const std::int64_t n = writer.tensors()[t].elements();
    const std::int64_t begin = n * rank / world;
    const std::int64_t end = n * (rank + 1) / world;
    std::vector<float> part;
    for (std::int64_t i = begin; i < end; ++i) part.push_back(value_at(t, i));
    writer.write(writer.tensors()[t].name, begin, DType::f32, std::as_bytes(std::span(part)));
  }
  writer.finish();
}

void write_with_ranks(const std::string& directory, int world, std::int64_t max_shard_bytes) {
  ModelFilesWriterOptions options;
  options.max_shard_bytes = max_shard_bytes;
  ModelFilesWriter first(directory, kSpecs, options);
  first.create();
  std::vector<std::thread> ranks;
  for (int rank = 1; rank < world; ++rank)
    ranks.emplace_back([&, rank] {
      ModelFilesWriter writer(directory, kSpecs, options);
      write_as_rank(writer, rank, world);
    });
  write_as_rank(first, 0, world);
  for (std::thread& rank : ranks) rank.join();
}

void expect_content(const std::string& directory) {
  const ModelFiles files(directory);
  ASSERT_EQ(files.tensors().size(), kSpecs.size());
  for (std::size_t t = 0; t < kSpecs.size(); ++t) {
    const StoredTensor& tensor = files.at(kSpecs[t].name);
    EXPECT_EQ(tensor.shape, kSpecs[t].shape);
    EXPECT_EQ(tensor.dtype, kSpecs[t].dtype);
    std::vector<float> read(static_cast<std::size_t>(tensor.elements()));
    files.read(tensor.name, 0, tensor.elements(), DType::f32,
               std::as_writable_bytes(std::span(read)));
    for (std::size_t i = 0; i < read.size(); ++i) {
      float expected = value_at(t, static_cast<std::int64_t>(i));
      if (tensor.dtype == DType::bf16) {  // 1000.25 and so on need 8 bits or fewer, rounded to even
        const auto bits = std::bit_cast<std::uint32_t>(expected);
        expected = std::bit_cast<float>((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);
      }
      ASSERT_EQ(read[i], expected) << tensor.name << " " << i;
    }
  }
}

TEST(ModelFilesWriter, SeveralRanksWriteOneFileTheSame) {
  std::string contents[2];
  for (const int world : {1, 3}) {
    const TestDirectory directory;
    write_with_ranks(directory.path(), world, 5'000'000'000);
    expect_content(directory.path());
    contents[world == 3] = read_whole_file(directory / "model.safetensors", 1 << 20);
  }
  EXPECT_EQ(contents[0], contents[1]);
}

TEST(ModelFilesWriter, ShardsAreFilledInOrderAndIndexed) {
  const TestDirectory directory;
  write_with_ranks(directory.path(), 2, 2900);
  expect_content(directory.path());
  const JsonValue index = read_json_file(directory / "model.safetensors.index.json", {});
  EXPECT_EQ(index.at("metadata").at("total_size").as_integer(), 2800 + 66 + 2 + 2800);
  const auto map = index.at("weight_map").members();
  ASSERT_EQ(map.size(), 5u);
  EXPECT_EQ(map[0].second.as_string(), "model-00001-of-00002.safetensors");
  EXPECT_EQ(map[3].second.as_string(), "model-00001-of-00002.safetensors");
  EXPECT_EQ(map[4].second.as_string(), "model-00002-of-00002.safetensors");
}

TEST(ModelFilesWriter, ATensorLargerThanAShardHasItsOwn) {
  const ModelFilesWriter writer("d", kSpecs, {.max_shard_bytes = 10, .metadata = {}});
  EXPECT_EQ(writer.tensors()[0].file, "d/model-00001-of-00004.safetensors");
  EXPECT_EQ(writer.tensors()[2].file, "d/model-00003-of-00004.safetensors");
  EXPECT_EQ(writer.tensors()[3].file, "d/model-00003-of-00004.safetensors");
  EXPECT_EQ(writer.tensors()[4].file, "d/model-00004-of-00004.safetensors");
  EXPECT_EQ(writer.tensors()[4].offset_bytes, 4096);
}

TEST(ModelFilesWriter, LargeTensorsPassThroughTheBuffer) {
  const TestDirectory directory;
  const std::int64_t n = 700'001;  // more than one buffer in each direction
  ModelFilesWriter writer(directory.path(), {{"w", DType::bf16, {n}}});
  writer.create();
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
  writer.write("w", 0, DType::f32, std::as_bytes(std::span(values)));
  writer.finish();
  std::vector<float> read(values.size() - 5);
  ModelFiles(directory.path())
      .read("w", 5, n - 5, DType::f32, std::as_writable_bytes(std::span(read)));
  EXPECT_TRUE(std::equal(read.begin(), read.end(), values.begin() + 5));
}

TEST(ModelFilesWriter, WritingWithoutFilesNamesTheFile) {
  const TestDirectory directory;
  ModelFilesWriter writer(directory.path(), kSpecs);
  const std::vector<float> one = {1};
  EXPECT_NE(message_of<IoError>([&] {
              writer.write("scalar", 0, DType::f32, std::as_bytes(std::span(one)));
            }).find("model.safetensors: cannot open"),
            std::string::npos);
}

TEST(ModelFilesWriterDeathTest, RangesOutsideOfATensorAreBugs) {
  const TestDirectory directory;
  ModelFilesWriter writer(directory.path(), kSpecs);
  writer.create();
  const std::vector<float> two = {1, 2};
  EXPECT_DEATH(writer.write("scalar", 0, DType::f32, std::as_bytes(std::span(two))), "range");
}

}  // namespace
}  // namespace strata::train
