#include "train/files/model_files.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <map>

#include "core/check.h"
#include "core/error.h"
#include "core/json.h"
#include "train/files/convert.h"
#include "train/files/safetensors_index.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

bool exists(const std::string& path) {
  std::error_code ignored;  // an unreadable path is reported when it is opened
  return fs::exists(path, ignored);
}

[[noreturn]] void throw_no_weights(const std::string& directory) {
  std::string message = directory + ": expected " + kSingle + " or " + kIndex + ", found neither";
  if (exists(directory + "/pytorch_model.bin") ||
      exists(directory + "/pytorch_model.bin.index.json"))
    message +=
        "; pytorch_model.bin is a pickle, which is not read: save the model with "
        "save_pretrained(..., safe_serialization=True)";
  throw DataError(message);
}

/// Reads a text; a file that cannot be read is a fault of the data, like one that cannot be parsed.
std::string read_text_file(const std::string& path) {
  try {
    return read_whole_file(path, JsonOptions().size_limit_bytes);
  } catch (const IoError& error) {
    throw DataError(error.what());
  }
}

/// The similarity of two names: length of their common end, since prefixes such as "model." vary.
std::size_t common_suffix(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return static_cast<std::size_t>(end.first - a.rbegin());
}

}  // namespace

bool ModelFiles::has_weights(const std::string& path) {
  return exists(path + "/" + kSingle) || exists(path + "/" + kIndex);
}

ModelFiles::ModelFiles(const std::string& path) : path_(path) {
  if (!exists(path)) throw DataError(path + ": no such model directory or file");
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (path.ends_with(".json")) {
      open_index(fs::path(path).parent_path().string(), path);
    } else {
      open_shard(path);
    }
  } else if (exists(path + "/" + kSingle)) {
    open_shard(path + "/" + kSingle);
  } else if (exists(path + "/" + kIndex)) {
    open_index(path, path + "/" + kIndex);
  } else {
    throw_no_weights(path);
  }
  add_names();
}

void ModelFiles::open_shard(const std::string& path) {
  File file = File::open_for_reading(path);
  for (StoredTensor& tensor : read_safetensors_header(file)) {
    tensors_.push_back(std::move(tensor));
    file_of_tensor_.push_back(files_.size());
  }
  files_.push_back(std::move(file));
}

void ModelFiles::add_names() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto [it, is_new] = index_of_name_.emplace(tensors_[i].name, i);
    if (!is_new)
      throw DataError(tensors_[i].file + ": tensor '" + tensors_[i].name + "' is also in " +
                      tensors_[it->second].file + ", expected in one shard");
  }
}

void ModelFiles::open_index(const std::string& directory, const std::string& index_path) {
  const auto entries = parse_safetensors_index(read_text_file(index_path), index_path);
  std::map<std::string, JsonValue> shards;
  for (const IndexEntry& entry : entries) shards.emplace(entry.file, entry.place);
  for (const auto& [shard, place] : shards) {
    const std::string path = directory.empty() ? shard : directory + "/" + shard;
    if (!exists(path)) place.fail("the shard " + path + " does not exist");
    open_shard(path);
  }
  std::unordered_map<std::string_view, std::string_view> file_of;
  for (const StoredTensor& tensor : tensors_) file_of.emplace(tensor.name, tensor.file);
  for (const IndexEntry& entry : entries) {
    const auto found = file_of.find(entry.tensor);
    if (found == file_of.end() || fs::path(found->second).filename() != entry.file)
      entry.place.fail("expected tensor '" + entry.tensor + "' in " + entry.file + ", found " +
                       (found == file_of.end() ? "nowhere" : "in " + std::string(found->second)));
  }
}

const StoredTensor* ModelFiles::find(std::string_view name) const {
  const auto it = index_of_name_.find(std::string(name));
  return it == index_of_name_.end() ? nullptr : &tensors_[it->second];
}

const StoredTensor& ModelFiles::at(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return *tensor;
  std::string closest = "no tensor at all";
  std::size_t best = 0;
  for (const StoredTensor& tensor : tensors_) {
    const std::size_t alike = common_suffix(name, tensor.name);
    if (alike < best || (alike == best && best > 0)) continue;
    best = alike;
    closest = "'" + tensor.name + "'";
  }
  throw DataError(fmt::format("{}: misses tensor '{}'; it has {} tensors, the closest is {}", path_,
                              name, tensors_.size(), closest));
}

void ModelFiles::read(std::string_view name, std::int64_t element_begin, std::int64_t element_count,
                      DType target, std::span<std::byte> out) const {
  const StoredTensor& tensor = at(name);
  if (!tensor.dtype || !can_convert(*tensor.dtype, target))
    throw DataError(tensor.file + ": tensor '" + tensor.name + "' has type " + tensor.stored_type +
                    ", which cannot be read as " + std::string(name_of(target)));
  STRATA_CHECK(element_begin >= 0 && element_count >= 0 &&
                   element_begin <= tensor.elements() - element_count,
               name, "range", element_begin, element_count, "of", tensor.elements());
  STRATA_CHECK(static_cast<std::int64_t>(out.size()) == element_count * size_of(target), name);
  const File& file = files_[file_of_tensor_[static_cast<std::size_t>(&tensor - tensors_.data())]];
  const std::string subject = "tensor '" + tensor.name + "'";
  const std::int64_t source_size = size_of(*tensor.dtype);
  const std::int64_t begin = tensor.offset_bytes + element_begin * source_size;
  if (*tensor.dtype == target) {
    file.read(begin, out, subject);
    return;
  }
  const std::int64_t step = static_cast<std::int64_t>(kBufferBytes) / source_size;
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(std::min(step, element_count) * source_size));
  for (std::int64_t done = 0; done < element_count; done += step) {
    const std::int64_t count = std::min(step, element_count - done);
    const std::span<std::byte> part(buffer.data(), static_cast<std::size_t>(count * source_size));
    file.read(begin + done * source_size, part, subject);
    convert_elements(*tensor.dtype, part.data(), target, out.data() + done * size_of(target),
                     count);
  }
}

}  // namespace strata::train
