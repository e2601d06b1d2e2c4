#include "train/files/model_files_writer.h"

#include <algorithm>
#include <cstdio>

#include "core/check.h"
#include "core/error.h"
#include "core/json_writer.h"
#include "train/files/convert.h"

namespace strata::train {
namespace {

constexpr std::int64_t kBufferBytes = std::int64_t{1} << 20;

std::string shard_name(const std::string& base, std::size_t index, std::size_t count) {
  if (count == 1) return base + ".safetensors";
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, "-%05zu-of-%05zu.safetensors", index + 1, count);
  return base + suffix;
}

std::int64_t bytes_of(const TensorSpec& spec) {
  const auto elements = checked_elements(spec.shape);
  STRATA_CHECK(elements && *elements <= INT64_MAX / size_of(spec.dtype), spec.name);
  return *elements * size_of(spec.dtype);
}

}  // namespace

ModelFilesWriter::ModelFilesWriter(std::string directory, std::vector<TensorSpec> tensors,
                                   ModelFilesWriterOptions options)
    : directory_(std::move(directory)), specs_(std::move(tensors)), options_(std::move(options)) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    STRATA_CHECK(specs_[i].name != "__metadata__");
    STRATA_CHECK(index_of_name_.emplace(specs_[i].name, i).second, "two tensors", specs_[i].name);
  }
  lay_out();
}

void ModelFilesWriter::lay_out() {
  // As huggingface_hub does: in order, a new shard when the next tensor would not fit.
  std::vector<std::size_t> starts{0};
  std::int64_t size = 0;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const std::int64_t bytes = bytes_of(specs_[i]);
    if (i > starts.back() && size + bytes > options_.max_shard_bytes) {
      starts.push_back(i);
      size = 0;
    }
    size += bytes;
  }
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const std::size_t end = s + 1 < starts.size() ? starts[s + 1] : specs_.size();
    const std::span<const TensorSpec> part(specs_.data() + starts[s], end - starts[s]);
    shards_.push_back({directory_ + "/" + shard_name(options_.base_name, s, starts.size()),
                       starts[s], end, make_safetensors_header(part, options_.metadata)});
    auto offset = static_cast<std::int64_t>(shards_.back().header.size());
    for (const TensorSpec& spec : part) {
      tensors_.push_back({spec.name, std::string(safetensors_type(spec.dtype)), spec.dtype,
                          spec.shape, shards_.back().path, offset, bytes_of(spec)});
      shard_of_tensor_.push_back(s);
      offset += tensors_.back().size_bytes;
    }
  }
}

std::int64_t ModelFilesWriter::total_bytes() const {
  std::int64_t total = 0;
  for (const StoredTensor& tensor : tensors_) total += tensor.size_bytes;
  return total;
}

void ModelFilesWriter::create() {
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    const Shard& shard = shards_[s];
    auto size = static_cast<std::int64_t>(shard.header.size());
    for (std::size_t i = shard.first_tensor; i < shard.end_tensor; ++i)
      size += tensors_[i].size_bytes;
    File file = File::create(shard.path);
    file.allocate(size);
    file.write(0, std::as_bytes(std::span(shard.header)), "the header");
    open_files_.insert_or_assign(s, std::move(file));
  }
  if (shards_.size() > 1) write_index();
}

void ModelFilesWriter::write_index() const {
  JsonWriter json(2);
  json.begin_object()
      .key("metadata")
      .begin_object()
      .member("total_size", total_bytes())
      .end_object();
  json.key("weight_map").begin_object();
  for (const StoredTensor& tensor : tensors_)
    json.member(tensor.name, tensor.file.substr(directory_.size() + 1));
  json.end_object().end_object();
  write_file_atomically(directory_ + "/" + options_.base_name + ".safetensors.index.json",
                        json.finish() + "\n");
}

File& ModelFilesWriter::open_file(std::size_t shard) {
  auto it = open_files_.find(shard);
  if (it == open_files_.end())
    it = open_files_.emplace(shard, File::open_for_writing(shards_[shard].path)).first;
  return it->second;
}

void ModelFilesWriter::write(std::string_view name, std::int64_t element_begin, DType source,
                             std::span<const std::byte> data) {
  const auto found = index_of_name_.find(std::string(name));
  STRATA_CHECK(found != index_of_name_.end(), "no tensor", name);
  const StoredTensor& tensor = tensors_[found->second];
  const DType target = *tensor.dtype;
  const std::int64_t count = static_cast<std::int64_t>(data.size()) / size_of(source);
  STRATA_CHECK(count * size_of(source) == static_cast<std::int64_t>(data.size()), name);
  STRATA_CHECK(element_begin >= 0 && element_begin <= tensor.elements() - count, name, "range",
               element_begin, count, "of", tensor.elements());
  STRATA_CHECK(can_convert(source, target), name);
  if (count == 0) return;
  File& file = open_file(shard_of_tensor_[found->second]);
  const std::string subject = "tensor '" + tensor.name + "'";
  const std::int64_t begin = tensor.offset_bytes + element_begin * size_of(target);
  if (source == target) {
    file.write(begin, data, subject);
    return;
  }
  const std::int64_t step = kBufferBytes / size_of(target);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(step, count) * size_of(target)));
  for (std::int64_t done = 0; done < count; done += step) {
    const std::int64_t part = std::min(step, count - done);
    convert_elements(source, data.data() + done * size_of(source), target, buffer.data(), part);
    file.write(begin + done * size_of(target),
               {buffer.data(), static_cast<std::size_t>(part * size_of(target))}, subject);
  }
}

void ModelFilesWriter::finish() {
  for (auto& [shard, file] : open_files_) file.sync();
  open_files_.clear();
}

}  // namespace strata::train
