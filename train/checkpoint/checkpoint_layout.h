// The place of every byte of a checkpoint, and the rank that writes it: pure arithmetic on lists
// that all ranks have, so that no rank has to send any of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/files/safetensors_header.h"
#include "train/files/shard_layout.h"

namespace strata::train {

inline constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;

/// Bytes [begin, end) of a file of the layout.
struct FilePiece {
  std::size_t file = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size_bytes() const { return end - begin; }
  bool operator==(const FilePiece&) const = default;
};

struct CheckpointLayoutOptions {
  std::int64_t max_shard_bytes = kMaxShardBytes;
  std::int64_t block_bytes = kBlockBytes;  ///< a power of two, at least 4096
};

/// Files model*.safetensors, then optimizer*.safetensors (none if there are no such tensors), with
/// tensors in the order given. Each file is cut into blocks from its beginning (the last one may be
/// shorter), and blocks are numbered over all files. Immutable.
class CheckpointLayout {
 public:
  struct CheckpointFile {
    std::string name;
    std::string header;
    std::int64_t size_bytes = 0;
    std::int64_t first_block = 0;  ///< number of the file's first block
    std::size_t first_tensor = 0;  ///< index in tensors()
    std::size_t end_tensor = 0;
  };
  struct PlacedTensor {
    TensorSpec spec;
    FilePiece bytes;
  };

  /// Names must differ within each list.
  CheckpointLayout(std::vector<TensorSpec> model, std::vector<TensorSpec> optimizer,
                   const CheckpointLayoutOptions& options = {});

  [[nodiscard]] const std::vector<CheckpointFile>& files() const { return files_; }
  /// The model's tensors, then the optimizer's.
  [[nodiscard]] const std::vector<PlacedTensor>& tensors() const { return tensors_; }
  /// Name and text of the index of each list of tensors that takes several files.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& indexes() const {
    return indexes_;
  }
  /// Bytes that must be free: for all files, small ones, and the file system's own needs.
  [[nodiscard]] std::int64_t room_bytes() const;
  [[nodiscard]] std::int64_t block_bytes() const { return block_bytes_; }
  [[nodiscard]] std::int64_t blocks() const { return blocks_; }
  [[nodiscard]] FilePiece block(std::int64_t number) const;
  /// The number of the block in which a byte lies.
  [[nodiscard]] std::int64_t block_at(std::size_t file, std::int64_t byte) const {
    return files_[file].first_block + byte / block_bytes_;
  }
  /// The bytes of elements [first_element, first_element + elements) of tensors()[tensor].
  [[nodiscard]] FilePiece piece(std::size_t tensor, std::int64_t first_element,
                                std::int64_t elements) const;
  /// Says what a piece holds: "tensor 'x' elements 10 to 20" (the end excluded), the first and last
  /// of several tensors, or "the header".
  [[nodiscard]] std::string describe(const FilePiece& piece) const;

 private:
  void add_list(std::vector<TensorSpec> specs, const char* base_name, std::int64_t max_shard_bytes);

  std::int64_t block_bytes_;
  std::int64_t blocks_ = 0;
  std::vector<CheckpointFile> files_;
  std::vector<PlacedTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> indexes_;
};

/// The part of a saved piece that one rank writes: each block has one writer.
struct RoutedPiece {
  FilePiece piece;
  int saver = 0;   ///< the rank that has the bytes
  int writer = 0;  ///< the rank that writes them; if it is another, the bytes travel
  bool operator==(const RoutedPiece&) const = default;
};

/// Says which rank writes what.
struct BlockAssignment {
  std::vector<int> writer;          ///< ranks by block
  std::vector<RoutedPiece> pieces;  ///< ascending by file and byte; rank 0 saves and writes headers
  /// Numbers of the blocks that `rank` writes, ascending.
  [[nodiscard]] std::vector<std::int64_t> blocks_of(int rank) const;
};

/// `saved[rank]`: the pieces that a rank has, in any order, without headers (rank 0's writer makes
/// those). The writer of a block is the rank that saves its first byte. Throws InternalError naming
/// tensor and elements if something is saved by no rank or twice, or lies outside the tensors.
BlockAssignment assign_blocks(const CheckpointLayout& layout,
                              std::span<const std::vector<FilePiece>> saved);

}  // namespace strata::train
