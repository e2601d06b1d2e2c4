#include "train/inspect/tensor_folder.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "train/checkpoint/checkpoint_directory.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code ignored;  // a path that cannot be examined is reported when it is opened
  return fs::exists(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// True if the folder has a manifest of Strata; a manifest.json may also be another program's.
bool has_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  return is_folder(folder) && exists(path) &&
         is_manifest(read_whole_file(path, kManifestLimitBytes));
}

}  // namespace

std::string TensorFolder::Tensor::type_text() const {
  return stored.dtype ? std::string(name_of(*stored.dtype)) : stored.stored_type;
}

std::string TensorFolder::Tensor::file_name() const {
  return fs::path(stored.file).filename().string();
}

TensorFolder::TensorFolder(FileSystem& files, const std::string& path) : path_(path) {
  if (has_manifest(path)) {
    // Readers of parts already use several threads.
    checkpoint_ =
        std::make_unique<CheckpointReader>(files, path, CheckpointReaderOptions{.threads = 1});
    for (const CheckpointReader::Tensor& tensor : checkpoint_->tensors()) {
      const bool optimizer =
          checkpoint_->find(CheckpointReader::Part::optimizer, tensor.stored.name) == &tensor;
      tensors_.push_back({tensor.stored, optimizer});
    }
    return;
  }
  refuse_output_folder(files, path);
  plain_ = std::make_unique<ModelFiles>(path);
  for (const StoredTensor& stored : plain_->tensors()) tensors_.push_back({stored, false});
}

const Manifest* TensorFolder::manifest() const {
  return checkpoint_ == nullptr ? nullptr : &checkpoint_->manifest();
}

std::optional<std::string> TensorFolder::small_file(const std::string& name) const {
  if (checkpoint_ != nullptr) {
    if (checkpoint_->manifest().find_whole_file(name) == nullptr) return std::nullopt;
    return checkpoint_->whole_file(name);
  }
  const std::string folder = is_folder(path_) ? path_ : parent_directory(path_);
  if (!exists(folder + "/" + name)) return std::nullopt;
  return read_whole_file(folder + "/" + name, kWholeFileLimitBytes);
}

std::int64_t TensorFolder::bytes_of(const TensorPart& part) const {
  const StoredTensor& stored = tensors_[part.tensor].stored;
  if (!stored.dtype)
    throw DataError(stored.file + ": tensor '" + stored.name + "' has type " + stored.stored_type +
                    ", which cannot be read");
  return part.elements * size_of(*stored.dtype);
}

std::vector<std::span<const std::byte>> TensorFolder::read(std::span<const TensorPart> parts,
                                                           std::vector<std::byte>& buffer) const {
  std::int64_t total = 0;
  for (const TensorPart& part : parts) total += bytes_of(part);
  buffer.resize(static_cast<std::size_t>(total));
  std::vector<std::span<const std::byte>> views;
  std::vector<CheckpointReader::Range> ranges;
  std::size_t offset = 0;
  for (const TensorPart& part : parts) {
    const auto out = std::span(buffer).subspan(offset, static_cast<std::size_t>(bytes_of(part)));
    offset += out.size();
    views.emplace_back(out);
    const StoredTensor& stored = tensors_[part.tensor].stored;
    if (checkpoint_ != nullptr)
      ranges.push_back(
          {&checkpoint_->tensors()[part.tensor], part.first_element, part.elements, out});
    else
      plain_->read(stored.name, part.first_element, part.elements, *stored.dtype, out);
  }
  if (checkpoint_ != nullptr) checkpoint_->read(ranges);
  return views;
}

void refuse_output_folder(FileSystem& files, const std::string& path) {
  if (!is_folder(path) || ModelFiles::has_weights(path)) return;
  const auto checkpoints = list_checkpoints(files, path);
  if (!checkpoints.empty())
    throw DataError(path + ": is a folder of checkpoints, not one of them: name one, such as " +
                    checkpoints.back().path + ", or use: inspect list " + path);
}

std::vector<TensorPart> cut_tensor(std::size_t tensor, std::int64_t elements,
                                   std::int64_t part_elements, std::int64_t phase) {
  std::vector<TensorPart> parts;
  for (std::int64_t first = 0; first < elements;) {
    const std::int64_t count =
        std::min(part_elements - (first + phase) % part_elements, elements - first);
    parts.push_back({tensor, first, count});
    first += count;
  }
  return parts;
}

}  // namespace strata::train
