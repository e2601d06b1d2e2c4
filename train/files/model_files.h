// The weights of a Hugging Face directory, read by ranges: a rank reads what it owns, never the
// whole model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/dtype.h"
#include "core/file.h"
#include "train/files/safetensors_header.h"

namespace strata::train {

/// Open safetensors files whose headers have been checked. Reading is safe from several threads.
class ModelFiles {
 public:
  /// `path`: a directory with model.safetensors or model.safetensors.index.json and its shards, a
  /// .safetensors file, or an index. Throws DataError naming file, tensor, found and expected.
  explicit ModelFiles(const std::string& path);

  /// Whether `path` is a directory with weights in it (a directory without them is a
  /// configuration).
  static bool has_weights(const std::string& path);

  /// In order of shards and offsets.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// nullptr when there is none of that name.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;
  /// Throws DataError that names the closest tensors there are.
  [[nodiscard]] const StoredTensor& at(std::string_view name) const;

  /// Elements [element_begin, element_begin + element_count) of the tensor, row-major, converted to
  /// `target` (nearest even) into `out`, which has exactly their size. Holds 1 MiB at most besides.
  /// Throws DataError (unknown tensor or type), IoError with file, offset and tensor.
  void read(std::string_view name, std::int64_t element_begin, std::int64_t element_count,
            DType target, std::span<std::byte> out) const;

 private:
  void open_index(const std::string& directory, const std::string& index_path);
  void open_shard(const std::string& path);
  void add_names();

  std::string path_;
  std::vector<File> files_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::size_t> file_of_tensor_;
  std::unordered_map<std::string, std::size_t> index_of_name_;
};

}  // namespace strata::train
