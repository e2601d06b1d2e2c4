#include "train/checkpoint/block_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <random>

#include "core/error.h"
#include "core/file.h"
#include "core/testing/failing_file_system.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

constexpr std::int64_t kSmallBlock = 4096;

class BlockWriterTest : public testing::Test {
 protected:
  static CheckpointLayout make_layout(std::int64_t elements = 30000) {
    return CheckpointLayout({{"a", DType::f32, {elements}}, {"b", DType::bf16, {777}}},
                            {{"m.a", DType::f32, {elements}}},
                            {.max_shard_bytes = 100000, .block_bytes = kSmallBlock});
  }
  static std::byte content(std::size_t file, std::int64_t byte) {
    return static_cast<std::byte>((static_cast<std::uint64_t>(byte) * 2654435761U >> 11) + file);
  }
  static std::vector<std::byte> bytes_of(const FilePiece& piece) {
    std::vector<std::byte> data;
    for (std::int64_t i = piece.begin; i < piece.end; ++i) data.push_back(content(piece.file, i));
    return data;
  }
  static std::vector<std::int64_t> all_blocks(const CheckpointLayout& layout) {
    std::vector<std::int64_t> blocks;
    for (std::int64_t b = 0; b < layout.blocks(); ++b) blocks.push_back(b);
    return blocks;
  }
  /// Cuts everything but the headers into pieces of up to `most` bytes.
  static std::vector<FilePiece> cut(const CheckpointLayout& layout, std::int64_t most,
                                    std::mt19937_64& random) {
    std::vector<FilePiece> pieces;
    for (std::size_t f = 0; f < layout.files().size(); ++f)
      for (auto at = static_cast<std::int64_t>(layout.files()[f].header.size());
           at < layout.files()[f].size_bytes;) {
        const auto wish = at + 1 + static_cast<std::int64_t>(random() % most);
        pieces.push_back({f, at, std::min(layout.files()[f].size_bytes, wish)});
        at = pieces.back().end;
      }
    return pieces;
  }
  /// Checks that the files hold header and content, and that the hashes are theirs.
  void check_files(const CheckpointLayout& layout, const std::vector<BlockHash>& hashes) {
    ASSERT_EQ(static_cast<std::int64_t>(hashes.size()), layout.blocks());
    std::int64_t number = 0;
    for (std::size_t f = 0; f < layout.files().size(); ++f) {
      const auto& file = layout.files()[f];
      const std::string text = read_whole_file(directory_ / file.name, 1 << 26);
      ASSERT_EQ(static_cast<std::int64_t>(text.size()), file.size_bytes);
      ASSERT_TRUE(text.starts_with(file.header));
      for (std::size_t i = file.header.size(); i < text.size(); ++i)
        ASSERT_EQ(static_cast<std::byte>(text[i]), content(f, static_cast<std::int64_t>(i)))
            << file.name << ' ' << i;
      const auto bytes = std::as_bytes(std::span(text));
      for (; number < layout.blocks() && layout.block(number).file == f; ++number) {
        const FilePiece block = layout.block(number);
        EXPECT_EQ(hashes[static_cast<std::size_t>(number)].block, number);
        EXPECT_EQ(hashes[static_cast<std::size_t>(number)].hash,
                  hash_128(bytes.subspan(static_cast<std::size_t>(block.begin),
                                         static_cast<std::size_t>(block.size_bytes()))));
      }
    }
  }

  TestDirectory directory_;
  PosixFileSystem files_;
};

struct Order {
  const char* name;
  std::int64_t largest_piece;
  bool shuffled;
  std::int64_t memory_blocks;
};

class Orders : public BlockWriterTest, public testing::WithParamInterface<Order> {};
INSTANTIATE_TEST_SUITE_P(Order, Orders,
                         testing::Values(Order{"ascending", 3000, false, 4},
                                         Order{"long_pieces", 50000, false, 4},
                                         Order{"shuffled_in_much_memory", 3000, true, 1000},
                                         Order{"shuffled_in_two_blocks", 3000, true, 2}),
                         [](const testing::TestParamInfo<Order>& order) {
                           return order.param.name;
                         });

TEST_P(Orders, PiecesBecomeBlocks) {
  const CheckpointLayout layout = make_layout();
  std::mt19937_64 random(3);
  auto pieces = cut(layout, GetParam().largest_piece, random);
  if (GetParam().shuffled) std::shuffle(pieces.begin(), pieces.end(), random);
  BlockWriter writer(files_, directory_.path(), layout, all_blocks(layout),
                     BlockWriter::Role::creator,
                     {.threads = 3, .memory_bytes = GetParam().memory_blocks * kSmallBlock});
  for (const FilePiece& piece : pieces) writer.put(piece.file, piece.begin, bytes_of(piece));
  check_files(layout, writer.finish());
  std::int64_t total = 0;
  for (const auto& file : layout.files()) total += file.size_bytes;
  if (GetParam().shuffled && GetParam().memory_blocks == 2)
    EXPECT_GT(writer.bytes_written(), total);  // some blocks were evicted and read again
  else
    EXPECT_EQ(writer.bytes_written(), total);
}

TEST_F(BlockWriterTest, SeveralThreadsPut) {
  const CheckpointLayout layout = make_layout();
  std::mt19937_64 random(5);
  auto pieces = cut(layout, 900, random);
  std::shuffle(pieces.begin(), pieces.end(), random);
  BlockWriter writer(files_, directory_.path(), layout, all_blocks(layout),
                     BlockWriter::Role::creator, {.threads = 2, .memory_bytes = 5 * kSmallBlock});
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < pieces.size(); i += 3)
        writer.put(pieces[i].file, pieces[i].begin, bytes_of(pieces[i]));
    });
  for (std::thread& thread : threads) thread.join();
  check_files(layout, writer.finish());
}

TEST_F(BlockWriterTest, RanksShareFilesByBlocks) {
  const CheckpointLayout layout = make_layout();
  std::mt19937_64 random(9);
  const auto pieces = cut(layout, 9000, random);
  constexpr int kWorld = 3;
  std::vector<std::vector<FilePiece>> saved(kWorld);
  for (const FilePiece& piece : pieces) saved[random() % kWorld].push_back(piece);
  const BlockAssignment assignment = assign_blocks(layout, saved);
  std::vector<std::unique_ptr<BlockWriter>> writers;
  for (int rank = 0; rank < kWorld; ++rank)
    writers.push_back(std::make_unique<BlockWriter>(
        files_, directory_.path(), layout, assignment.blocks_of(rank),
        rank == 0 ? BlockWriter::Role::creator : BlockWriter::Role::helper,
        BlockWriterOptions{.threads = 1, .memory_bytes = 0}));
  for (const RoutedPiece& routed : assignment.pieces) {
    const bool header = routed.piece.begin <
                        static_cast<std::int64_t>(layout.files()[routed.piece.file].header.size());
    if (!header)
      writers[static_cast<std::size_t>(routed.writer)]->put(routed.piece.file, routed.piece.begin,
                                                            bytes_of(routed.piece));
  }
  std::vector<BlockHash> hashes;
  for (const auto& writer : writers)
    for (const BlockHash& hash : writer->finish()) hashes.push_back(hash);
  std::sort(hashes.begin(), hashes.end(),
            [](const BlockHash& a, const BlockHash& b) { return a.block < b.block; });
  check_files(layout, hashes);
}

TEST_F(BlockWriterTest, EachBlockIsABeat) {
  const CheckpointLayout layout = make_layout();
  std::atomic<std::int64_t> beats = 0;
  BlockWriter writer(files_, directory_.path(), layout, all_blocks(layout),
                     BlockWriter::Role::creator, {.beat = Beat([&beats] { ++beats; })});
  std::mt19937_64 random(1);
  for (const FilePiece& piece : cut(layout, 5000, random))
    writer.put(piece.file, piece.begin, bytes_of(piece));
  (void)writer.finish();
  EXPECT_GE(beats, layout.blocks() + std::ssize(layout.files()));
}

TEST_F(BlockWriterTest, HeadersLongerThanABlockNeedNoPiece) {
  std::vector<TensorSpec> many;
  for (int i = 0; i < 200; ++i) many.push_back({"tensor" + std::to_string(i), DType::f32, {3}});
  const CheckpointLayout layout(many, {}, {.block_bytes = kSmallBlock});
  ASSERT_GT(layout.files()[0].header.size(), 2U * kSmallBlock);
  BlockWriter writer(files_, directory_.path(), layout, all_blocks(layout),
                     BlockWriter::Role::creator, {.threads = 1, .memory_bytes = 0});
  const auto header = static_cast<std::int64_t>(layout.files()[0].header.size());
  const FilePiece rest{0, header, layout.files()[0].size_bytes};
  writer.put(0, header, bytes_of(rest));
  check_files(layout, writer.finish());
}

TEST_F(BlockWriterTest, MissingAndRepeatedBytesAreNamed) {
  const CheckpointLayout layout = make_layout(1000);
  BlockWriter writer(files_, directory_.path(), layout, all_blocks(layout),
                     BlockWriter::Role::creator, {.memory_bytes = 0});
  const auto put = [&](std::int64_t first, std::int64_t count) {
    const FilePiece piece = layout.piece(0, first, count);
    writer.put(piece.file, piece.begin, bytes_of(piece));
  };
  put(0, 100);
  put(150, 100);
  EXPECT_NE(message_of<InternalError>([&] { put(249, 1); }).find("tensor 'a' elements 249 to 250"),
            std::string::npos);
  EXPECT_NE(message_of<InternalError>([&] {
              writer.finish();
            }).find("nobody put tensor 'a' elements 100 to 150"),
            std::string::npos);
  const BlockWriterOptions options{.memory_bytes = 0};
  BlockWriter helper(files_, directory_.path(), layout, {2}, BlockWriter::Role::helper, options);
  EXPECT_NE(message_of<InternalError>([&] {
              helper.put(0, 4096, bytes_of({0, 4096, 4100}));
            }).find("not one that this rank writes"),
            std::string::npos);
}

// Fault 14.
TEST_F(BlockWriterTest, WhatCannotFitIsNotBegun) {
  const CheckpointLayout layout = make_layout(9000);
  std::int64_t bytes = 0;
  for (const auto& file : layout.files()) bytes += file.size_bytes;
  const TestDirectory here;
  FailingFileSystem full(files_, {.operation = FileOperation::create, .nth = -1});
  const auto begin = [&] {
    return message_of<IoError>([&] {
      const BlockWriter writer(full, here.path(), layout, all_blocks(layout),
                               BlockWriter::Role::creator);
    });
  };
  full.say_free(bytes);
  const std::string message = begin();
  EXPECT_NE(
      message.find(here.path() + ": the checkpoint needs " + std::to_string(bytes + bytes / 100) +
                   " bytes, of which " + std::to_string(bytes) + " are free"),
      std::string::npos)
      << message;
  EXPECT_NE(message.find("No space left on device"), std::string::npos);
  EXPECT_EQ(full.count(), 0) << "files were made";
  full.say_free(bytes + bytes / 100);
  EXPECT_EQ(begin(), "no error");
  EXPECT_GT(full.count(), 0);
}

// Fault 17.
TEST_F(BlockWriterTest, EveryFailedWriteAndSyncIsOneErrorAndNothingIsSyncedAfterIt) {
  const CheckpointLayout layout = make_layout(9000);
  std::mt19937_64 random(4);
  const auto pieces = cut(layout, 2000, random);
  for (const FileOperation operation :
       {FileOperation::create, FileOperation::reserve, FileOperation::write, FileOperation::sync}) {
    for (int nth = 1;; ++nth) {
      ASSERT_LT(nth, 100);
      const TestDirectory here;
      FailingFileSystem failing(
          files_,
          {.operation = operation, .nth = nth, .error_number = ENOSPC, .partial = nth % 2 == 0});
      FailingFileSystem counting(failing, {.operation = FileOperation::sync, .nth = -1});
      std::string again;
      const std::string message = message_of<IoError>([&] {
        BlockWriter writer(counting, here.path(), layout, all_blocks(layout),
                           BlockWriter::Role::creator,
                           {.threads = 2, .memory_bytes = 3 * kSmallBlock});
        try {
          for (const FilePiece& piece : pieces)
            writer.put(piece.file, piece.begin, bytes_of(piece));
          writer.finish();
        } catch (const IoError&) {
          const int syncs = counting.count();
          again = message_of<IoError>([&] { writer.finish(); });
          EXPECT_EQ(counting.count(), syncs);
          if (operation == FileOperation::write) {
            EXPECT_EQ(syncs, 0);
          }
          throw;
        }
      });
      if (failing.fired() == 0) {
        EXPECT_GT(nth, 1);
        EXPECT_EQ(message, "no error");
        break;
      }
      EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
      EXPECT_NE(message.find(here.path()), std::string::npos) << message;
      if (!again.empty()) {
        EXPECT_EQ(again, message);
      }
    }
  }
}

}  // namespace
}  // namespace strata::train
