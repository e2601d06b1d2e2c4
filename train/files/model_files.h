// Reads the weights of a Hugging Face directory by ranges, never the whole model.
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

  /// True if `path` is a directory that contains weights; without weights it is a configuration.
  static bool has_weights(const std::string& path);

  /// All tensors by shard and offset.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Returns null if no tensor has this name.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;
  /// Returns the tensor; throws DataError that names the most similar ones if there is none.
  [[nodiscard]] const StoredTensor& at(std::string_view name) const;

  /// Reads elements [element_begin, element_begin + element_count) of the tensor, row-major,
  /// converted to `target` (nearest even), into `out` of exactly their size, using at most 1 MiB
  /// more. Throws DataError (unknown tensor or type), and IoError with file, offset and tensor.
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
