#include "train/checkpoint/checkpoint_reader.h"

#include <fmt/core.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "core/check.h"
#include "core/error.h"
#include "core/file.h"
#include "train/files/safetensors_index.h"

namespace strata::train {
namespace {

constexpr const char* kAdvice =
    "; the checkpoint was changed or damaged after it was saved: resume from an older one, or "
    "restore the file from a copy";
/// The least number of blocks for which starting another thread is worthwhile.
constexpr std::size_t kBlocksPerThread = 2;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::byte, Free>;

AlignedBuffer aligned_buffer(std::int64_t bytes) {
  AlignedBuffer memory(static_cast<std::byte*>(std::aligned_alloc(
      static_cast<std::size_t>(kDirectAlignmentBytes), static_cast<std::size_t>(bytes))));
  if (memory == nullptr)
    throw OutOfMemory(
        fmt::format("out of host memory: {} bytes for the blocks of a checkpoint; read with fewer "
                    "threads or ranks",
                    bytes));
  return memory;
}

/// Reads, and tries once more after an error: a disk's second attempt often succeeds.
void read_twice(const StorageFile& file, std::int64_t offset, std::span<std::byte> out) {
  try {
    file.read(offset, out);
  } catch (const IoError&) {
    file.read(offset, out);
  }
}

std::string read_text(const StorageFile& file) {
  std::string text(static_cast<std::size_t>(file.size_bytes()), '\0');
  read_twice(file, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool is_optimizer(const std::string& file_name) { return file_name.starts_with("optimizer"); }

}  // namespace

Manifest read_manifest(FileSystem& files, const std::string& path) {
  const auto file = files.open_for_reading(path, Caching::cached);
  if (file->size_bytes() > kManifestLimitBytes)
    throw DataError(fmt::format("{}: has {} bytes, more than the limit of {}", path,
                                file->size_bytes(), kManifestLimitBytes));
  return parse_manifest(read_text(*file), path);
}

CheckpointReader::CheckpointReader(FileSystem& files, std::string directory,
                                   const CheckpointReaderOptions& options)
    : files_(files), directory_(std::move(directory)), options_(options) {
  const std::string path = path_of(kManifestName);
  if (!is_name_taken(directory_)) throw DataError(directory_ + ": there is no such folder");
  if (!is_name_taken(path) && is_name_taken(path_of("latest")))
    throw DataError(directory_ + ": is a folder of checkpoints, not one of them: name " +
                    path_of("latest") + " or an older one");
  if (!is_name_taken(path))
    throw DataError(directory_ + ": has no " + kManifestName +
                    ", so it is not a checkpoint, or one whose saving never ended: resume from "
                    "another one");
  manifest_ = read_manifest(files_, path);
  header_bytes_.resize(manifest_.block_files.size());
  open_files();
  refuse_other_files();
  for (std::size_t f = 0; f < open_.size(); ++f) read_header(f);
}

void CheckpointReader::open_files() {
  const auto open = [this](const std::string& name, Caching caching) {
    if (!is_name_taken(path_of(name))) throw DataError(path_of(name) + ": is missing" + kAdvice);
    return files_.open_for_reading(path_of(name), caching);
  };
  for (const Manifest::BlockFile& file : manifest_.block_files) {
    open_.push_back(open(file.name, options_.caching));
    const std::int64_t found = open_.back()->size_bytes();
    if (found != file.size_bytes) refuse_size(file.name, file.size_bytes, found);
  }
  for (const Manifest::HashedFile& file : manifest_.whole_files) {
    const std::int64_t found = open(file.name, Caching::cached)->size_bytes();
    if (found != file.size_bytes) refuse_size(file.name, file.size_bytes, found);
  }
}

void CheckpointReader::refuse_size(const std::string& name, std::int64_t expected,
                                   std::int64_t found) {
  std::string message =
      fmt::format("{}: has {} bytes, expected {}: ", path_of(name), found, expected);
  if (found > expected) throw DataError(message + "bytes were added" + kAdvice);
  message += fmt::format("bytes {} to {}", found, expected);
  const std::size_t last = open_.size() - 1;
  if (last < manifest_.block_files.size() && manifest_.block_files[last].name == name) {
    try {
      read_header(last);
      message += " (" + content_text(last, found, expected) + ")";
    } catch (const Error&) {
      message += " (the header and all tensors of the file)";
    }
  }
  throw DataError(message + " are missing" + kAdvice);
}

std::string CheckpointReader::content_text(std::size_t file, std::int64_t begin,
                                           std::int64_t end) const {
  std::vector<StoredTensor> stored;
  for (const Tensor& tensor : tensors_)
    if (tensor.file == file) stored.push_back(tensor.stored);
  return describe_bytes(stored, header_bytes_[file], begin, end);
}

void CheckpointReader::refuse_other_files() const {
  for (const DirectoryEntry& entry : files_.list(directory_)) {
    const std::string& name = entry.name;
    if (!name.ends_with(".safetensors") && !name.ends_with(".safetensors.index.json")) continue;
    const bool known =
        manifest_.find_whole_file(name) != nullptr ||
        std::any_of(manifest_.block_files.begin(), manifest_.block_files.end(),
                    [&](const Manifest::BlockFile& file) { return file.name == name; });
    if (!known)
      throw DataError(path_of(name) +
                      ": the manifest does not have this file, but other programs would load it; "
                      "move it out of the checkpoint");
  }
}

/// Verifies and parses one header, and adds its tensors.
void CheckpointReader::read_header(std::size_t file) {
  const Manifest::BlockFile& entry = manifest_.block_files[file];
  std::uint64_t length = 0;
  std::vector<std::byte> prefix(sizeof length);
  if (entry.size_bytes < static_cast<std::int64_t>(prefix.size()))
    throw DataError(path_of(entry.name) + ": not a safetensors file" + kAdvice);
  const std::vector<Copy> first{{file, 0, prefix}};
  copy(first);
  std::memcpy(&length, prefix.data(), sizeof length);
  const auto room = static_cast<std::uint64_t>(entry.size_bytes) - sizeof length;
  std::vector<std::byte> beginning(sizeof length + std::min(length, room));
  const std::vector<Copy> all{{file, 0, beginning}};
  copy(all);
  header_bytes_[file] = static_cast<std::int64_t>(beginning.size());
  const bool optimizer = is_optimizer(entry.name);
  auto& index = optimizer ? optimizer_index_ : model_index_;
  for (StoredTensor& stored :
       parse_safetensors_header(beginning, entry.size_bytes, path_of(entry.name))) {
    if (!index.emplace(stored.name, tensors_.size()).second)
      throw DataError(path_of(entry.name) + ": tensor '" + stored.name +
                      "' is in another file, too; the checkpoint is not one that Strata wrote");
    tensors_.push_back({std::move(stored), file});
  }
}

const CheckpointReader::Tensor* CheckpointReader::find(Part part, std::string_view name) const {
  const auto& index = part == Part::optimizer ? optimizer_index_ : model_index_;
  const auto found = index.find(std::string(name));
  return found == index.end() ? nullptr : &tensors_[found->second];
}

std::string CheckpointReader::whole_file(const std::string& name) const {
  const Manifest::HashedFile* entry = manifest_.find_whole_file(name);
  if (entry == nullptr)
    throw DataError(directory_ + ": the manifest has no file " + name +
                    "; the checkpoint was not saved with it");
  const auto file = files_.open_for_reading(path_of(name), Caching::cached);
  const std::string text = read_text(*file);
  const Hash128 found = hash_128(std::as_bytes(std::span(text)));
  if (found != entry->hash)
    throw DataError(fmt::format("{}: bytes 0 to {} have hash {}, expected {}{}", path_of(name),
                                text.size(), found.hex(), entry->hash.hex(), kAdvice));
  return text;
}

std::string CheckpointReader::block_text(std::size_t file, std::int64_t block) const {
  const Manifest::BlockFile& entry = manifest_.block_files[file];
  const std::int64_t begin = block * manifest_.block_bytes;
  const std::int64_t end = std::min(begin + manifest_.block_bytes, entry.size_bytes);
  std::string text =
      fmt::format("{}: block {} (bytes {} to {}", path_of(entry.name), block, begin, end);
  if (header_bytes_[file] == 0) return text + ", in which the header lies)";
  return text + ", " + content_text(file, begin, end) + ")";
}

/// Reads a block into `buffer` and verifies it.
std::span<const std::byte> CheckpointReader::read_block(std::size_t file, std::int64_t block,
                                                        std::span<std::byte> buffer) const {
  const Manifest::BlockFile& entry = manifest_.block_files[file];
  const std::int64_t begin = block * manifest_.block_bytes;
  const auto data = buffer.first(
      static_cast<std::size_t>(std::min(manifest_.block_bytes, entry.size_bytes - begin)));
  read_twice(*open_[file], begin, data);
  const Hash128 found = hash_128(data);
  const Hash128 expected = entry.blocks[static_cast<std::size_t>(block)];
  if (found != expected)
    throw DataError(block_text(file, block) + " has hash " + found.hex() + ", expected " +
                    expected.hex() + kAdvice);
  options_.beat();
  return data;
}

void CheckpointReader::read(std::span<const Range> ranges) const {
  std::vector<Copy> copies;
  for (const Range& range : ranges) {
    const StoredTensor& stored = range.tensor->stored;
    if (!stored.dtype)
      throw DataError(stored.file + ": tensor '" + stored.name + "' has type " +
                      stored.stored_type + ", which cannot be read");
    const std::int64_t size = size_of(*stored.dtype);
    STRATA_CHECK(range.first_element >= 0 && range.elements >= 0 &&
                     range.elements <= stored.elements() - range.first_element,
                 stored.name, range.first_element, range.elements, stored.elements());
    STRATA_CHECK(static_cast<std::int64_t>(range.out.size()) == range.elements * size, stored.name);
    copies.push_back(
        {range.tensor->file, stored.offset_bytes + range.first_element * size, range.out});
  }
  copy(copies);
}

void CheckpointReader::copy(std::span<const Copy> copies) const {
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<std::size_t>> wanted;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const auto end = copies[i].begin + static_cast<std::int64_t>(copies[i].out.size());
    for (std::int64_t block = copies[i].begin / manifest_.block_bytes;
         block * manifest_.block_bytes < end && !copies[i].out.empty(); ++block)
      wanted[{copies[i].file, block}].push_back(i);
  }
  std::vector<Job> jobs;
  jobs.reserve(wanted.size());
  for (auto& [place, indexes] : wanted)
    jobs.push_back({place.first, place.second, std::move(indexes)});
  run(jobs, copies);
}

void CheckpointReader::do_job(const Job& job, std::span<const Copy> copies,
                              std::span<std::byte> buffer) const {
  const auto data = read_block(job.file, job.block, buffer);
  const std::int64_t block_begin = job.block * manifest_.block_bytes;
  const std::int64_t block_end = block_begin + static_cast<std::int64_t>(data.size());
  for (const std::size_t i : job.copies) {
    const Copy& copy = copies[i];
    const std::int64_t begin = std::max(copy.begin, block_begin);
    const std::int64_t end =
        std::min(copy.begin + static_cast<std::int64_t>(copy.out.size()), block_end);
    std::memcpy(copy.out.data() + (begin - copy.begin), data.data() + (begin - block_begin),
                static_cast<std::size_t>(end - begin));
  }
}

void CheckpointReader::run(std::span<const Job> jobs, std::span<const Copy> copies,
                           std::vector<std::string>* damage) const {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::size_t failed_job = jobs.size();
  std::exception_ptr error;
  std::map<std::size_t, std::string> messages;
  const auto work = [&] {
    std::size_t job = 0;
    try {
      const AlignedBuffer memory = aligned_buffer(manifest_.block_bytes);
      const std::span<std::byte> buffer(memory.get(),
                                        static_cast<std::size_t>(manifest_.block_bytes));
      while ((job = next++) < jobs.size()) try {
          do_job(jobs[job], copies, buffer);
        } catch (const Error& failure) {
          if (damage == nullptr) throw;
          const std::lock_guard lock(mutex);
          messages.emplace(job, failure.what());
        }
    } catch (...) {
      const std::lock_guard lock(mutex);
      // Blocks are taken in order, so some thread has taken each one before the failed one.
      next = jobs.size();
      if (error == nullptr || job < failed_job) {
        failed_job = job;
        error = std::current_exception();
      }
    }
  };
  const std::size_t threads = std::min(static_cast<std::size_t>(std::max(1, options_.threads)),
                                       std::max<std::size_t>(1, jobs.size() / kBlocksPerThread));
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (error != nullptr) std::rethrow_exception(error);
  for (auto& [job, message] : messages) damage->push_back(std::move(message));
}

/// Throws unless an index, if there is one, agrees with the headers.
void CheckpointReader::check_index(const std::string& base_name, Part part) const {
  const std::string name = index_name(base_name);
  if (manifest_.find_whole_file(name) == nullptr) return;
  for (const IndexEntry& entry : parse_safetensors_index(whole_file(name), path_of(name))) {
    const Tensor* tensor = find(part, entry.tensor);
    if (tensor == nullptr || manifest_.block_files[tensor->file].name != entry.file)
      throw DataError(path_of(name) + ": expected tensor '" + entry.tensor + "' in " + entry.file +
                      ", found " +
                      (tensor == nullptr ? std::string("nowhere")
                                         : "in " + manifest_.block_files[tensor->file].name));
  }
}

std::vector<CheckpointReader::Job> CheckpointReader::all_blocks() const {
  std::vector<Job> jobs;
  for (std::size_t f = 0; f < open_.size(); ++f)
    for (std::size_t block = 0; block < manifest_.block_files[f].blocks.size(); ++block)
      jobs.push_back({f, static_cast<std::int64_t>(block), {}});
  return jobs;
}

void CheckpointReader::verify() const {
  for (const Manifest::HashedFile& file : manifest_.whole_files) (void)whole_file(file.name);
  check_index("model", Part::model);
  check_index("optimizer", Part::optimizer);
  run(all_blocks(), {});
}

std::vector<std::string> CheckpointReader::find_damage() const {
  std::vector<std::string> damage;
  const auto look = [&damage](const auto& check) {
    try {
      check();
      return true;
    } catch (const Error& error) {
      damage.emplace_back(error.what());
      return false;
    }
  };
  bool readable = true;
  for (const Manifest::HashedFile& file : manifest_.whole_files)
    readable = look([&] { (void)whole_file(file.name); }) && readable;
  if (readable) {  // otherwise a damaged index has been named already
    look([&] { check_index("model", Part::model); });
    look([&] { check_index("optimizer", Part::optimizer); });
  }
  run(all_blocks(), {}, &damage);
  return damage;
}

}  // namespace strata::train
