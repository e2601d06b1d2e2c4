#include "train/checkpoint/checkpoint_layout.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

using Specs = std::vector<TensorSpec>;
constexpr std::int64_t kSmallBlock = 4096;

Specs random_specs(std::mt19937_64& random, int count) {
  Specs specs;
  for (int i = 0; i < count; ++i) {
    const DType dtype = std::array{DType::f32, DType::bf16, DType::u8}[random() % 3];
    const auto rows = static_cast<std::int64_t>(random() % 60);  // 0 gives an empty tensor
    specs.push_back({"t" + std::to_string(i), dtype, {rows, 1 + static_cast<int>(random() % 97)}});
  }
  return specs;
}

/// Cuts every tensor at random elements; a random rank saves each part.
std::vector<std::vector<FilePiece>> random_partition(const CheckpointLayout& layout, int world,
                                                     std::mt19937_64& random) {
  std::vector<std::vector<FilePiece>> saved(static_cast<std::size_t>(world));
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const auto& placed = layout.tensors()[t];
    const std::int64_t elements = placed.bytes.size_bytes() / size_of(placed.spec.dtype);
    for (std::int64_t first = 0; first < elements;) {
      const auto wish = static_cast<std::int64_t>(1 + random() % 3000);
      const std::int64_t count = std::min(elements - first, wish);
      saved[random() % saved.size()].push_back(layout.piece(t, first, count));
      first += count;
    }
  }
  for (auto& pieces : saved) std::shuffle(pieces.begin(), pieces.end(), random);
  return saved;
}

TEST(CheckpointLayout, FilesAreThoseThatReadersOfSafetensorsExpect) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    const Specs model = random_specs(random, 12);
    const CheckpointLayout layout(model, random_specs(random, 30),
                                  {.max_shard_bytes = 9000, .block_bytes = kSmallBlock});
    std::int64_t blocks = 0, all_bytes = 0;
    for (std::size_t f = 0; f < layout.files().size(); ++f) {
      const auto& file = layout.files()[f];
      all_bytes += file.size_bytes;
      EXPECT_EQ(file.header.size() % 4096, 0U);
      const auto parsed = parse_safetensors_header(std::as_bytes(std::span(file.header)),
                                                   file.size_bytes, file.name);
      ASSERT_EQ(parsed.size(), file.end_tensor - file.first_tensor);
      for (const StoredTensor& stored : parsed) {
        const auto found =
            std::find_if(layout.tensors().begin() + static_cast<std::ptrdiff_t>(file.first_tensor),
                         layout.tensors().begin() + static_cast<std::ptrdiff_t>(file.end_tensor),
                         [&](const auto& placed) { return placed.spec.name == stored.name; });
        EXPECT_EQ(found->bytes,
                  (FilePiece{f, stored.offset_bytes, stored.offset_bytes + stored.size_bytes}));
        EXPECT_EQ(found->spec.shape, stored.shape);
        EXPECT_EQ(found->spec.dtype, stored.dtype);
      }
      EXPECT_EQ(file.first_block, blocks);
      std::int64_t covered = 0;
      for (; blocks < layout.blocks() && layout.block(blocks).file == f; ++blocks) {
        const FilePiece block = layout.block(blocks);
        EXPECT_EQ(block.begin, covered);
        EXPECT_GT(block.size_bytes(), 0);
        EXPECT_EQ(layout.block_at(f, block.end - 1), blocks);
        covered = block.end;
      }
      EXPECT_EQ(covered, file.size_bytes);
    }
    EXPECT_EQ(blocks, layout.blocks());
    EXPECT_GT(layout.room_bytes(), all_bytes);
    EXPECT_LT(layout.room_bytes(), all_bytes + all_bytes / 10);
  }
}

TEST(CheckpointLayout, NamesFollowTheNumberOfFiles) {
  const Specs two{{"a", DType::f32, {1000}}, {"b", DType::f32, {1000}}};
  const CheckpointLayout whole(two, {});
  ASSERT_EQ(whole.files().size(), 1U);  // no optimizer, no file of it
  EXPECT_EQ(whole.files()[0].name, "model.safetensors");
  EXPECT_TRUE(whole.indexes().empty());
  EXPECT_EQ(whole.block_bytes(), 1 << 20);
  const CheckpointLayout cut(two, two, {.max_shard_bytes = 5000, .block_bytes = kSmallBlock});
  ASSERT_EQ(cut.files().size(), 4U);
  EXPECT_EQ(cut.files()[3].name, "optimizer-00002-of-00002.safetensors");
  ASSERT_EQ(cut.indexes().size(), 2U);
  EXPECT_EQ(cut.indexes()[0].first, "model.safetensors.index.json");
  EXPECT_NE(cut.indexes()[1].second.find("\"b\": \"optimizer-00002-of-00002.safetensors\""),
            std::string::npos);
}

TEST(CheckpointLayout, DescribesWhatBytesHold) {
  const CheckpointLayout layout(
      {{"a", DType::f32, {10}}, {"e", DType::f32, {0}}, {"b", DType::bf16, {8}}}, {},
      {.block_bytes = kSmallBlock});
  EXPECT_EQ(layout.describe({0, 0, 10}), "the header");
  EXPECT_EQ(layout.describe({0, 4100, 4109}), "tensor 'a' elements 1 to 4");
  EXPECT_EQ(layout.describe({0, 0, layout.files()[0].size_bytes}),
            "the header and tensor 'a' elements 0 to 10 up to tensor 'b' elements 0 to 8");
}

TEST(BlockAssignment, EveryBlockHasOneWriterAndGetsAllItsBytes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const CheckpointLayout layout(random_specs(random, 1 + static_cast<int>(random() % 12)),
                                  random_specs(random, static_cast<int>(random() % 20)),
                                  {.max_shard_bytes = 20000, .block_bytes = kSmallBlock});
    const int world = 1 + static_cast<int>(random() % 9);
    const auto saved = random_partition(layout, world, random);
    const BlockAssignment assignment = assign_blocks(layout, saved);

    std::vector<std::vector<int>> saver_of(layout.files().size());
    for (std::size_t f = 0; f < layout.files().size(); ++f) {
      saver_of[f].assign(static_cast<std::size_t>(layout.files()[f].size_bytes), 0);
      for (int rank = 0; rank < world; ++rank)
        for (const FilePiece& piece : saved[static_cast<std::size_t>(rank)])
          if (piece.file == f)
            std::fill(saver_of[f].begin() + piece.begin, saver_of[f].begin() + piece.end, rank);
    }
    for (std::int64_t b = 0; b < layout.blocks(); ++b) {
      const FilePiece block = layout.block(b);
      ASSERT_EQ(assignment.writer[static_cast<std::size_t>(b)],
                saver_of[block.file][static_cast<std::size_t>(block.begin)]);
    }
    FilePiece last{0, 0, 0};
    for (const RoutedPiece& routed : assignment.pieces) {
      const FilePiece& piece = routed.piece;
      ASSERT_LT(piece.begin, piece.end);
      ASSERT_TRUE(piece.file == last.file ? piece.begin == last.end : piece.begin == 0);
      last = piece;
      for (std::int64_t byte = piece.begin; byte < piece.end; ++byte) {
        ASSERT_EQ(routed.saver, saver_of[piece.file][static_cast<std::size_t>(byte)]);
        ASSERT_EQ(routed.writer,
                  assignment.writer[static_cast<std::size_t>(layout.block_at(piece.file, byte))]);
      }
    }
    std::int64_t written = 0;
    for (int rank = 0; rank < world; ++rank)
      written += static_cast<std::int64_t>(assignment.blocks_of(rank).size());
    EXPECT_EQ(written, layout.blocks());
  }
}

TEST(BlockAssignment, PiecesLongerThanABlockStayWhole) {
  const CheckpointLayout layout({{"a", DType::u8, {100000}}}, {}, {.block_bytes = kSmallBlock});
  const std::vector<std::vector<FilePiece>> saved{{layout.piece(0, 0, 50)},
                                                  {layout.piece(0, 50, 99950)}};
  const auto assignment = assign_blocks(layout, saved);
  // The header's block is rank 0's; block 1 begins with its 50 bytes; the rest is rank 1's.
  const std::vector<RoutedPiece> expected{{{0, 0, 4096}, 0, 0},
                                          {{0, 4096, 4146}, 0, 0},
                                          {{0, 4146, 8192}, 1, 0},
                                          {{0, 8192, 104096}, 1, 1}};
  EXPECT_EQ(assignment.pieces, expected);
}

TEST(BlockAssignment, HolesAndOverlapsNameTensorAndElements) {
  const CheckpointLayout layout({{"a", DType::f32, {3000}}, {"b", DType::bf16, {500}}}, {},
                                {.block_bytes = kSmallBlock});
  const auto message = [&](std::vector<std::vector<FilePiece>> saved) {
    return message_of<InternalError>([&] { assign_blocks(layout, saved); });
  };
  const FilePiece b = layout.piece(1, 0, 500);
  EXPECT_EQ(
      message({{layout.piece(0, 0, 1000)}, {layout.piece(0, 1200, 1800), b}}),
      "no rank saves model.safetensors bytes 8096 to 8896 (tensor 'a' elements 1000 to 1200)");
  EXPECT_EQ(message({{layout.piece(0, 0, 1001)}, {layout.piece(0, 1000, 2000), b}}),
            "ranks 0 and 1 both save model.safetensors bytes 8096 to 8100 (tensor 'a' elements "
            "1000 to 1001)");
  EXPECT_NE(message({{layout.piece(0, 0, 3000)}}).find("tensor 'b' elements 0 to 500"),
            std::string::npos);
  EXPECT_NE(message({{{0, 0, 4096}, layout.piece(0, 0, 3000), b}}).find("the header"),
            std::string::npos);
  EXPECT_NE(message({{{3, 0, 4096}}}).find("file 3"), std::string::npos);
}

// One element missing or saved twice is found wherever it lies.
TEST(BlockAssignment, EverySingleElementCounts) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    const CheckpointLayout layout({{"a", DType::f32, {5000}}, {"b", DType::bf16, {5000}}}, {},
                                  {.block_bytes = kSmallBlock});
    auto saved = random_partition(layout, 3, random);
    ASSERT_NO_THROW(assign_blocks(layout, saved));
    auto& pieces = saved[random() % 3];
    if (pieces.empty()) continue;
    FilePiece& piece = pieces[random() % pieces.size()];
    const auto bytes =
        size_of(piece.begin < layout.tensors()[1].bytes.begin ? DType::f32 : DType::bf16);
    if (round % 2 == 0)
      piece.begin += bytes;
    else
      piece.begin -= bytes;
    EXPECT_THROW(assign_blocks(layout, saved), InternalError);
  }
}

}  // namespace
}  // namespace strata::train
