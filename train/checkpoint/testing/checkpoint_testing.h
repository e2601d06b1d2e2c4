// Small checkpoints for tests: two ranks in one thread, with contents computed from the step.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "train/checkpoint/block_writer.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace strata::train {

inline constexpr std::int64_t kTestBlockBytes = 4096;

inline CheckpointLayout test_layout(std::int64_t max_shard_bytes = 11000) {
  return CheckpointLayout(
      {{"model.a", DType::f32, {50, 40}}, {"model.b", DType::bf16, {1111}}},
      {{"exp_avg.model.a", DType::f32, {50, 40}}, {"exp_avg.model.b", DType::f32, {1111}}},
      {.max_shard_bytes = max_shard_bytes, .block_bytes = kTestBlockBytes});
}

inline std::byte test_byte(std::int64_t step, std::size_t file, std::int64_t byte) {
  const auto mixed = (static_cast<std::uint64_t>(byte) + 1) * 0x9e3779b97f4a7c15U +
                     static_cast<std::uint64_t>(step) * 0xc2b2ae3d27d4eb4fU + file;
  return static_cast<std::byte>(mixed >> 37);
}

inline std::vector<std::byte> test_bytes(std::int64_t step, const FilePiece& piece) {
  std::vector<std::byte> data;
  for (std::int64_t i = piece.begin; i < piece.end; ++i)
    data.push_back(test_byte(step, piece.file, i));
  return data;
}

inline std::vector<WholeFile> test_whole_files(const CheckpointLayout& layout, std::int64_t step) {
  std::vector<WholeFile> files{{"config.json", "{\"model_type\": \"llama\"}\n"},
                               {"trainer_state.json", "{\"step\": " + std::to_string(step) + "}\n"},
                               {"templates/tool_use.jinja", "{{ tools }}"},
                               {"templates/rag.jinja", "{{ documents }}"}};
  for (const auto& [name, text] : layout.indexes()) files.push_back({name, text});
  return files;
}

/// Saves and commits; abandons a failed save, as a run does.
inline void save_test_checkpoint(FileSystem& files, const std::string& output, std::int64_t step,
                                 const CheckpointLayout& layout = test_layout(),
                                 const SaveAttempt& attempt = {"run", 0},
                                 const Facts& facts = {{"world", "2"}}) {
  // Cuts every tensor at a place that is no border of blocks.
  std::vector<std::vector<FilePiece>> saved(2);
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const auto& placed = layout.tensors()[t];
    const std::int64_t elements = placed.bytes.size_bytes() / size_of(placed.spec.dtype);
    saved[t % 2].push_back(layout.piece(t, 0, elements / 3));
    saved[(t + 1) % 2].push_back(layout.piece(t, elements / 3, elements - elements / 3));
  }
  const BlockAssignment assignment = assign_blocks(layout, saved);
  prepare_output_folder(files, output);
  try {
    const std::string staging = create_staging_folder(files, output, step, attempt);
    const BlockWriterOptions options{.threads = 1, .memory_bytes = 4 * kTestBlockBytes};
    BlockWriter first(files, staging, layout, assignment.blocks_of(0), BlockWriter::Role::creator,
                      options);
    BlockWriter second(files, staging, layout, assignment.blocks_of(1), BlockWriter::Role::helper,
                       options);
    for (const RoutedPiece& routed : assignment.pieces) {
      const FilePiece& piece = routed.piece;
      if (piece.begin < static_cast<std::int64_t>(layout.files()[piece.file].header.size()))
        continue;
      BlockWriter& writer = routed.writer == 0 ? first : second;
      writer.put(piece.file, piece.begin, test_bytes(step, piece));
    }
    std::vector<BlockHash> hashes = first.finish();
    for (const BlockHash& hash : second.finish()) hashes.push_back(hash);
    const auto whole = test_whole_files(layout, step);
    const Manifest manifest = make_manifest(layout, step, facts, whole, hashes);
    commit_checkpoint(files, output, manifest, whole, attempt);
  } catch (...) {
    abandon_checkpoint(files, output, step, attempt);
    throw;
  }
}

/// True if every tensor holds what save_test_checkpoint wrote at that step.
inline bool holds_test_content(const CheckpointReader& reader, std::int64_t step) {
  for (const CheckpointReader::Tensor& tensor : reader.tensors()) {
    std::vector<std::byte> data(static_cast<std::size_t>(tensor.stored.size_bytes));
    const std::vector<CheckpointReader::Range> range{{&tensor, 0, tensor.stored.elements(), data}};
    reader.read(range);
    const std::int64_t begin = tensor.stored.offset_bytes;
    if (data != test_bytes(step, {tensor.file, begin, begin + tensor.stored.size_bytes}))
      return false;
  }
  return true;
}

}  // namespace strata::train
