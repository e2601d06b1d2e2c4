// Writes the weights of a Hugging Face directory from many ranks at once: every offset follows from
// the list of tensors alone, so each rank writes its own ranges and nothing is gathered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/dtype.h"
#include "core/file.h"
#include "train/files/safetensors_header.h"
#include "train/files/shard_layout.h"

namespace strata::train {

struct ModelFilesWriterOptions {
  std::int64_t max_shard_bytes = kMaxShardBytes;
  std::string base_name = "model";
  Metadata metadata = {{"format", "pt"}};  ///< of every header; transformers asks for it
};

/// Order of use: every rank constructs it with the same list; one calls create(); after a barrier
/// all write(); each calls finish(); after a barrier one commits the directory (commit.h).
class ModelFilesWriter {
 public:
  /// Touches no file. `tensors` in the order of the file; names must differ.
  ModelFilesWriter(std::string directory, std::vector<TensorSpec> tensors,
                   ModelFilesWriterOptions options = {});

  /// Creates the files at full size with their headers, and the index when there are several.
  /// The directory must exist. Throws IoError (a full disk shows here).
  void create();

  /// Elements from `element_begin` of the tensor, given as `source`, converted to the tensor's type
  /// (nearest even). Ranges of different calls and ranks must not overlap.
  void write(std::string_view name, std::int64_t element_begin, DType source,
             std::span<const std::byte> data);

  /// What this object wrote reaches the disk. Nothing may be written afterwards.
  void finish();

  /// Where each tensor lies, in the order given.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Bytes of all tensors.
  [[nodiscard]] std::int64_t total_bytes() const;

 private:
  void lay_out();
  File& open_file(std::size_t shard);

  std::string directory_;
  std::vector<TensorSpec> specs_;
  ModelFilesWriterOptions options_;
  std::vector<ShardLayout> shards_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::size_t> shard_of_tensor_;
  std::unordered_map<std::string, std::size_t> index_of_name_;
  std::unordered_map<std::size_t, File> open_files_;  ///< by shard
};

}  // namespace strata::train
