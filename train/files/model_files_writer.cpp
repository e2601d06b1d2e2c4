#include "train/files/model_files_writer.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "train/files/convert.h"

namespace strata::train {
namespace {

constexpr std::int64_t kBufferBytes = std::int64_t{1} << 20;

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
  shards_ = lay_out_shards(specs_, options_.base_name, options_.max_shard_bytes, options_.metadata);
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    auto offset = static_cast<std::int64_t>(shards_[s].header.size());
    for (std::size_t i = shards_[s].first_tensor; i < shards_[s].end_tensor; ++i) {
      const TensorSpec& spec = specs_[i];
      tensors_.push_back({spec.name, std::string(safetensors_type(spec.dtype)), spec.dtype,
                          spec.shape, directory_ + "/" + shards_[s].name, offset, bytes_of(spec)});
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
    const ShardLayout& shard = shards_[s];
    File file = File::create(directory_ + "/" + shard.name);
    file.allocate(shard.size_bytes);
    file.write(0, std::as_bytes(std::span(shard.header)), "the header");
    open_files_.insert_or_assign(s, std::move(file));
  }
  if (shards_.size() > 1)
    write_file_atomically(directory_ + "/" + index_name(options_.base_name),
                          make_index_text(specs_, shards_));
}

File& ModelFilesWriter::open_file(std::size_t shard) {
  auto it = open_files_.find(shard);
  if (it == open_files_.end())
    it = open_files_.emplace(shard, File::open_for_writing(directory_ + "/" + shards_[shard].name))
             .first;
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
