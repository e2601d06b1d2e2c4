// Reads a checkpoint, and returns no byte whose block it has not verified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/beat.h"
#include "core/file_system.h"
#include "train/checkpoint/manifest.h"
#include "train/files/safetensors_header.h"

namespace strata::train {

/// Reads a manifest. Throws DataError as parse_manifest does, or for a file larger than
/// kManifestLimitBytes; IoError.
Manifest read_manifest(FileSystem& files, const std::string& path);

struct CheckpointReaderOptions {
  int threads = 4;  ///< threads that read and verify blocks in one call; each holds one block
  Caching caching = Caching::direct;
  Beat beat = {};  ///< told of each block that is verified
};

/// Thread-safe. `files` must outlive the reader. Throws IoError, and DataError for what is damaged,
/// missing or inconsistent; its message names file, block, bytes and tensors, and says what to do.
class CheckpointReader {
 public:
  enum class Part : std::uint8_t { model, optimizer };

  struct Tensor {
    StoredTensor stored;
    std::size_t file = 0;  ///< index in manifest().block_files
  };
  /// Elements to read, in the tensor's own dtype, row-major; `out` has exactly their size.
  struct Range {
    const Tensor* tensor = nullptr;
    std::int64_t first_element = 0;
    std::int64_t elements = 0;
    std::span<std::byte> out;
  };

  /// Reads manifest and headers, and checks that exactly the manifest's files are there with their
  /// sizes. The tensors' bytes are verified when they are read.
  CheckpointReader(FileSystem& files, std::string directory,
                   const CheckpointReaderOptions& options = {});

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  /// All tensors by file and offset, the model's first.
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Returns null if no tensor has this name.
  [[nodiscard]] const Tensor* find(Part part, std::string_view name) const;
  /// Returns the text of config.json or another small file. Throws DataError if the manifest has
  /// none of this name or the text is not the one that was saved.
  [[nodiscard]] std::string whole_file(const std::string& name) const;

  /// Fills all ranges, which may come in any order and overlap. Reads each block that they touch
  /// once, ascending; of several damaged blocks it reports the first.
  void read(std::span<const Range> ranges) const;

  /// Reads everything, and throws for the first damage.
  void verify() const;
  /// Reads everything without stopping at damage; returns a message per damaged small file, index
  /// and block, in this order. Empty: all is whole.
  [[nodiscard]] std::vector<std::string> find_damage() const;

 private:
  struct Copy {
    std::size_t file;
    std::int64_t begin;
    std::span<std::byte> out;
  };
  /// A block to read, and which copies need it.
  struct Job {
    std::size_t file;
    std::int64_t block;
    std::vector<std::size_t> copies;
  };
  void open_files();
  /// Throws; if the file was cut short but its header is there, the message says what is missing.
  [[noreturn]] void refuse_size(const std::string& name, std::int64_t expected, std::int64_t found);
  void refuse_other_files() const;
  void read_header(std::size_t file);
  void check_index(const std::string& base_name, Part part) const;
  void copy(std::span<const Copy> copies) const;
  /// Appends messages about damaged blocks to `damage` in order of jobs; if it is null, throws.
  void run(std::span<const Job> jobs, std::span<const Copy> copies,
           std::vector<std::string>* damage = nullptr) const;
  [[nodiscard]] std::vector<Job> all_blocks() const;
  void do_job(const Job& job, std::span<const Copy> copies, std::span<std::byte> buffer) const;
  std::span<const std::byte> read_block(std::size_t file, std::int64_t block,
                                        std::span<std::byte> buffer) const;
  [[nodiscard]] std::string content_text(std::size_t file, std::int64_t begin,
                                         std::int64_t end) const;
  [[nodiscard]] std::string block_text(std::size_t file, std::int64_t block) const;
  [[nodiscard]] std::string path_of(const std::string& name) const {
    return directory_ + "/" + name;
  }

  FileSystem& files_;
  std::string directory_;
  CheckpointReaderOptions options_;
  Manifest manifest_;
  std::vector<std::unique_ptr<StorageFile>> open_;  ///< parallel to manifest().block_files
  std::vector<std::int64_t> header_bytes_;          ///< parallel to it; 0: not yet known
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, std::size_t> model_index_;
  std::unordered_map<std::string, std::size_t> optimizer_index_;
};

}  // namespace strata::train
