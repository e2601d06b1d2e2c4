// The tensors of a checkpoint or of any other Hugging Face directory, seen alike.
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

/// Thread-safe. `files` lives longer.
class TensorFolder {
 public:
  struct Tensor {
    StoredTensor stored;
    bool optimizer = false;  ///< named "KIND.NAME"
    /// "bf16", or the file's own word for what is no type of ours.
    [[nodiscard]] std::string type_text() const;
    [[nodiscard]] std::string file_name() const;
  };

  /// A folder with a manifest is a checkpoint: what is read from it is verified. Of any other one
  /// the model's tensors are seen, as they are; a .safetensors file or an index serves as well.
  /// Throws DataError or IoError; an output folder is told to name one of its checkpoints.
  TensorFolder(FileSystem& files, const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Null of a folder without a manifest.
  [[nodiscard]] const Manifest* manifest() const;
  /// In order of files and offsets, the model's first.
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  /// The text of config.json or another small file beside the tensors; nullopt when there is none.
  [[nodiscard]] std::optional<std::string> small_file(const std::string& name) const;

  /// The parts' elements in their own types; the views lie in `buffer`. A block that several parts
  /// touch is read once. Throws DataError (damaged, or a type that cannot be read) or IoError.
  std::vector<std::span<const std::byte>> read(std::span<const TensorPart> parts,
                                               std::vector<std::byte>& buffer) const;
  [[nodiscard]] std::int64_t bytes_of(const TensorPart& part) const;

 private:
  std::string path_;
  std::unique_ptr<CheckpointReader> checkpoint_;
  std::unique_ptr<ModelFiles> plain_;
  std::vector<Tensor> tensors_;
};

/// Throws DataError that names a checkpoint to look at when `path` is a folder of them.
void refuse_output_folder(FileSystem& files, const std::string& path);

/// The whole tensor in parts that begin where (element + phase) is a multiple of `part_elements`,
/// and at 0.
std::vector<TensorPart> cut_tensor(std::size_t tensor, std::int64_t elements,
                                   std::int64_t part_elements, std::int64_t phase = 0);

}  // namespace strata::train
