// Gives one view of the tensors of a checkpoint and of any other Hugging Face directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/files/model_files.h"

namespace strata::train {

/// Elements [first_element, first_element + elements) of TensorFolder::tensors()[tensor].
struct TensorPart {
  std::size_t tensor = 0;
  std::int64_t first_element = 0;
  std::int64_t elements = 0;
};

/// Reads the tensors. Thread-safe. `files` must outlive it.
class TensorFolder {
 public:
  struct Tensor {
    StoredTensor stored;
    bool optimizer = false;  ///< the optimizer's, named "KIND.NAME"
    /// The type as "bf16", or the file's own word for a type without DType.
    [[nodiscard]] std::string type_text() const;
    [[nodiscard]] std::string file_name() const;
  };

  /// Opens a folder. With a manifest it is a checkpoint, whose bytes are verified as they are read.
  /// Otherwise, or for a .safetensors file or an index, gives the model's tensors as they are.
  /// Throws DataError, which for an output folder asks for one of its checkpoints, or IoError.
  TensorFolder(FileSystem& files, const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns null for a folder without a manifest.
  [[nodiscard]] const Manifest* manifest() const;
  /// All tensors by file and offset, the model's first.
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  /// The text of config.json or another small file beside the tensors; nullopt if there is none.
  [[nodiscard]] std::optional<std::string> small_file(const std::string& name) const;

  /// Reads the parts' elements in their own types; the views point into `buffer`. Reads each block
  /// once. Throws DataError (damaged, or a type that cannot be read) or IoError.
  std::vector<std::span<const std::byte>> read(std::span<const TensorPart> parts,
                                               std::vector<std::byte>& buffer) const;
  [[nodiscard]] std::int64_t bytes_of(const TensorPart& part) const;

 private:
  std::string path_;
  std::unique_ptr<CheckpointReader> checkpoint_;
  std::unique_ptr<ModelFiles> plain_;
  std::vector<Tensor> tensors_;
};

/// Throws DataError that names a checkpoint to examine if `path` is a folder of checkpoints.
void refuse_output_folder(FileSystem& files, const std::string& path);

/// Divides the whole tensor into parts that begin where (element + phase) is a multiple of
/// `part_elements`, and at 0.
std::vector<TensorPart> cut_tensor(std::size_t tensor, std::int64_t elements,
                                   std::int64_t part_elements, std::int64_t phase = 0);

}  // namespace strata::train
