#include "train/checkpoint/checkpoint_layout.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <tuple>
#include <unordered_set>

#include "core/check.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/round_up.h"

namespace strata::train {
namespace {

/// Divides a checkpoint's size to get the margin for small files and the file system's own needs.
constexpr std::int64_t kSpareShare = 100;

struct SavedPiece {
  FilePiece piece;
  int rank = 0;
};

std::string place_text(const CheckpointLayout& layout, const FilePiece& piece) {
  return fmt::format("{} bytes {} to {} ({})", layout.files()[piece.file].name, piece.begin,
                     piece.end, layout.describe(piece));
}

/// All non-empty pieces and the headers, in order of the files.
std::vector<SavedPiece> sorted_pieces(const CheckpointLayout& layout,
                                      std::span<const std::vector<FilePiece>> saved) {
  const auto& files = layout.files();
  std::vector<SavedPiece> sorted;
  for (std::size_t file = 0; file < files.size(); ++file)
    sorted.push_back({{file, 0, static_cast<std::int64_t>(files[file].header.size())}, 0});
  for (std::size_t rank = 0; rank < saved.size(); ++rank)
    for (const FilePiece& piece : saved[rank]) {
      if (piece.begin == piece.end) continue;
      if (piece.file >= files.size() || piece.begin > piece.end || piece.begin < 0 ||
          piece.end > files[piece.file].size_bytes)
        throw InternalError(fmt::format(
            "rank {} saves bytes {} to {} of file {}, which the checkpoint does not have", rank,
            piece.begin, piece.end, piece.file));
      sorted.push_back({piece, static_cast<int>(rank)});
    }
  std::sort(sorted.begin(), sorted.end(), [](const SavedPiece& a, const SavedPiece& b) {
    return std::tie(a.piece.file, a.piece.begin, a.piece.end, a.rank) <
           std::tie(b.piece.file, b.piece.begin, b.piece.end, b.rank);
  });
  return sorted;
}

/// Throws unless `sorted` covers every file from end to end, once.
void check_cover(const CheckpointLayout& layout, std::span<const SavedPiece> sorted) {
  const auto hole = [&](std::size_t file, std::int64_t begin, std::int64_t end) {
    throw InternalError("no rank saves " + place_text(layout, {file, begin, end}));
  };
  std::size_t next = 0;
  for (std::size_t file = 0; file < layout.files().size(); ++file) {
    std::int64_t expected = 0;
    int rank_before = 0;
    for (; next < sorted.size() && sorted[next].piece.file == file; ++next) {
      const auto& [piece, rank] = sorted[next];
      if (piece.begin > expected) hole(file, expected, piece.begin);
      if (piece.begin < expected)
        throw InternalError(
            fmt::format("ranks {} and {} both save {}", rank_before, rank,
                        place_text(layout, {file, piece.begin, std::min(expected, piece.end)})));
      expected = piece.end;
      rank_before = rank;
    }
    if (expected < layout.files()[file].size_bytes)
      hole(file, expected, layout.files()[file].size_bytes);
  }
}

}  // namespace

CheckpointLayout::CheckpointLayout(std::vector<TensorSpec> model, std::vector<TensorSpec> optimizer,
                                   const CheckpointLayoutOptions& options)
    : block_bytes_(options.block_bytes) {
  STRATA_CHECK(block_bytes_ >= kDirectAlignmentBytes &&
                   std::has_single_bit(static_cast<std::uint64_t>(block_bytes_)),
               block_bytes_);
  add_list(std::move(model), "model", options.max_shard_bytes);
  if (!optimizer.empty()) add_list(std::move(optimizer), "optimizer", options.max_shard_bytes);
}

void CheckpointLayout::add_list(std::vector<TensorSpec> specs, const char* base_name,
                                std::int64_t max_shard_bytes) {
  std::unordered_set<std::string_view> names;
  for (const TensorSpec& spec : specs)
    STRATA_CHECK(spec.name != "__metadata__" && names.insert(spec.name).second, spec.name);
  std::vector<ShardLayout> shards =
      lay_out_shards(specs, base_name, max_shard_bytes, {{"format", "pt"}});
  if (shards.size() > 1)
    indexes_.emplace_back(index_name(base_name), make_index_text(specs, shards));
  const std::size_t first_of_list = tensors_.size();
  for (ShardLayout& shard : shards) {
    auto offset = static_cast<std::int64_t>(shard.header.size());
    for (std::size_t i = shard.first_tensor; i < shard.end_tensor; ++i) {
      const std::int64_t bytes = bytes_of(specs[i]);
      tensors_.push_back({std::move(specs[i]), {files_.size(), offset, offset + bytes}});
      offset += bytes;
    }
    files_.push_back({std::move(shard.name), std::move(shard.header), shard.size_bytes, blocks_,
                      first_of_list + shard.first_tensor, first_of_list + shard.end_tensor});
    blocks_ += divide_up(shard.size_bytes, block_bytes_);
  }
}

std::int64_t CheckpointLayout::room_bytes() const {
  std::int64_t bytes = 0;
  for (const CheckpointFile& file : files_) bytes += file.size_bytes;
  return bytes + bytes / kSpareShare;
}

FilePiece CheckpointLayout::block(std::int64_t number) const {
  STRATA_CHECK(number >= 0 && number < blocks_, number, blocks_);
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), number,
                       [](std::int64_t n, const auto& file) { return n < file.first_block; });
  const auto file = static_cast<std::size_t>(after - files_.begin()) - 1;
  const std::int64_t begin = (number - files_[file].first_block) * block_bytes_;
  return {file, begin, std::min(begin + block_bytes_, files_[file].size_bytes)};
}

FilePiece CheckpointLayout::piece(std::size_t tensor, std::int64_t first_element,
                                  std::int64_t elements) const {
  const PlacedTensor& placed = tensors_[tensor];
  const std::int64_t size = size_of(placed.spec.dtype);
  STRATA_CHECK(first_element >= 0 && elements >= 0 &&
                   elements <= placed.bytes.size_bytes() / size - first_element,
               placed.spec.name, first_element, elements);
  const std::int64_t begin = placed.bytes.begin + first_element * size;
  return {placed.bytes.file, begin, begin + elements * size};
}

std::string CheckpointLayout::describe(const FilePiece& piece) const {
  const CheckpointFile& file = files_[piece.file];
  std::vector<StoredTensor> stored;
  for (std::size_t i = file.first_tensor; i < file.end_tensor; ++i)
    stored.push_back({.name = tensors_[i].spec.name,
                      .dtype = tensors_[i].spec.dtype,
                      .offset_bytes = tensors_[i].bytes.begin,
                      .size_bytes = tensors_[i].bytes.size_bytes()});
  return describe_bytes(stored, static_cast<std::int64_t>(file.header.size()), piece.begin,
                        piece.end);
}

std::vector<std::int64_t> BlockAssignment::blocks_of(int rank) const {
  std::vector<std::int64_t> blocks;
  for (std::size_t i = 0; i < writer.size(); ++i)
    if (writer[i] == rank) blocks.push_back(static_cast<std::int64_t>(i));
  return blocks;
}

BlockAssignment assign_blocks(const CheckpointLayout& layout,
                              std::span<const std::vector<FilePiece>> saved) {
  const std::vector<SavedPiece> sorted = sorted_pieces(layout, saved);
  check_cover(layout, sorted);
  BlockAssignment assignment;
  assignment.writer.assign(static_cast<std::size_t>(layout.blocks()), -1);
  const auto block_number = [&](std::size_t file, std::int64_t byte) {
    return static_cast<std::size_t>(layout.block_at(file, byte));
  };
  for (const auto& [piece, rank] : sorted) {
    const std::int64_t size = layout.block_bytes();
    std::int64_t begin = piece.begin;
    while (begin < piece.end) {
      // The part ends at the first block border after which another rank may write.
      const std::size_t block = block_number(piece.file, begin);
      const bool begins_block = begin % size == 0;
      if (begins_block) assignment.writer[block] = rank;
      const int writer = assignment.writer[block];
      const std::int64_t border = (begin / size + 1) * size;
      std::int64_t end = std::min(border, piece.end);
      if (writer == rank && piece.end > border) {  // its later blocks are this rank's, too
        end = piece.end;
        for (std::int64_t b = border; b < end; b += size)
          assignment.writer[block_number(piece.file, b)] = rank;
      }
      assignment.pieces.push_back({{piece.file, begin, end}, rank, writer});
      begin = end;
    }
  }
  return assignment;
}

}  // namespace strata::train
