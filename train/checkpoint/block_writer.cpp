#include "train/checkpoint/block_writer.h"

#include <fmt/core.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"

namespace strata::train {

BlockWriter::BlockWriter(FileSystem& files, std::string directory, const CheckpointLayout& layout,
                         std::vector<std::int64_t> blocks, Role role,
                         const BlockWriterOptions& options)
    : files_(files),
      directory_(std::move(directory)),
      layout_(layout),
      blocks_(std::move(blocks)),
      creator_(role == Role::creator),
      beat_(options.beat),
      open_(layout.files().size()),
      hashes_(blocks_.size()),
      done_(blocks_.size()) {
  STRATA_CHECK(std::is_sorted(blocks_.begin(), blocks_.end()));
  open_files(role, options.caching);
  const auto block_bytes = static_cast<std::size_t>(layout.block_bytes());
  const auto count =
      std::max<std::size_t>(2, static_cast<std::size_t>(options.memory_bytes) / block_bytes);
  std::byte* const memory =
      options.memory != nullptr ? options.memory : allocate(count * block_bytes);
  buffers_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    buffers_[i].memory = memory + i * block_bytes;
    free_.push_back(&buffers_[i]);
  }
  for (int i = 0; i < std::max(1, options.threads); ++i) threads_.emplace_back([this] { run(); });
}

std::byte* BlockWriter::allocate(std::size_t bytes) {
  try {
    return memory_.emplace(static_cast<std::int64_t>(bytes)).bytes().data();
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(
        fmt::format("out of host memory: {} bytes for the blocks of a checkpoint; start fewer "
                    "ranks on this host, or move less state to its memory",
                    bytes));
  }
}

BlockWriter::~BlockWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

/// Throws before anything is written if the checkpoint cannot fit beside the older ones.
void BlockWriter::require_space() const {
  const std::int64_t bytes = layout_.room_bytes();
  const std::optional<std::int64_t> free = files_.free_bytes(directory_);
  if (free && *free < bytes)
    throw IoError(directory_, 0,
                  fmt::format("the checkpoint needs {} bytes, of which {} are free, beside older "
                              "ones that go only when it is whole; nothing was written",
                              bytes, *free),
                  ENOSPC);
}

void BlockWriter::open_files(Role role, Caching caching) {
  if (role == Role::creator) require_space();
  for (std::size_t f = 0; f < open_.size(); ++f) {
    const auto& file = layout_.files()[f];
    const std::string path = directory_ + "/" + file.name;
    const auto own = std::lower_bound(blocks_.begin(), blocks_.end(), file.first_block);
    if (role == Role::creator) {
      open_[f] = files_.create(path, caching);
      open_[f]->reserve(file.size_bytes);
    } else if (own != blocks_.end() && layout_.block(*own).file == f) {
      open_[f] = files_.open_for_writing(path, caching);
    }
  }
}

std::size_t BlockWriter::index_of(std::int64_t block) const {
  const auto found = std::lower_bound(blocks_.begin(), blocks_.end(), block);
  if (found == blocks_.end() || *found != block)
    throw InternalError(fmt::format("{}: block {} ({}) is not one that this rank writes",
                                    directory_, block, layout_.describe(layout_.block(block))));
  return static_cast<std::size_t>(found - blocks_.begin());
}

void BlockWriter::put(std::size_t file, std::int64_t begin, std::span<const std::byte> data) {
  STRATA_CHECK(
      file < open_.size() && begin >= 0 &&
          begin + static_cast<std::int64_t>(data.size()) <= layout_.files()[file].size_bytes,
      file, begin, data.size());
  while (!data.empty()) {
    const std::int64_t number = layout_.block_at(file, begin);
    const FilePiece block = layout_.block(number);
    const std::int64_t at = begin - block.begin;
    const auto part = static_cast<std::int64_t>(
        std::min(data.size(), static_cast<std::size_t>(block.end - begin)));
    Lock lock(mutex_);
    Buffer& buffer = open_block(number, lock);
    add_range(buffer, at, at + part);
    ++buffer.users;
    lock.unlock();
    std::memcpy(buffer.memory + at, data.data(), static_cast<std::size_t>(part));
    lock.lock();
    --buffer.users;
    release_if_full(buffer);
    begin += part;
    data = data.subspan(static_cast<std::size_t>(part));
  }
}

/// Returns the buffer in which the block is collected. Called under the lock, which it releases
/// while it waits for a free buffer.
BlockWriter::Buffer& BlockWriter::open_block(std::int64_t block, Lock& lock) {
  if (done_[index_of(block)])
    throw InternalError(fmt::format("{}: bytes of block {} ({}) are put twice", directory_, block,
                                    layout_.describe(layout_.block(block))));
  for (;;) {
    rethrow();
    const auto found = filling_.find(block);
    if (found != filling_.end() && !found->second->writing) {
      found->second->touched = ++clock_;
      return *found->second;
    }
    if (found == filling_.end() && !free_.empty()) break;
    // Buffers that are being written become free soon; otherwise one must be evicted.
    if (writing_ > 0 || !queue_.empty() || !evict_one()) changed_.wait(lock);
  }
  Buffer& buffer = *free_.back();
  free_.pop_back();
  buffer.block = block;
  buffer.filled.clear();
  buffer.touched = ++clock_;
  filling_[block] = &buffer;
  fill_at_opening(buffer);
  return buffer;
}

/// Fills in what is known of a block that opens: its part of the header, or what was evicted.
void BlockWriter::fill_at_opening(Buffer& buffer) {
  const FilePiece block = layout_.block(buffer.block);
  const auto evicted = evicted_.find(buffer.block);
  if (evicted != evicted_.end()) {
    try {
      open_[block.file]->read(block.begin,
                              {buffer.memory, static_cast<std::size_t>(block.size_bytes())});
    } catch (...) {
      fail(std::current_exception());
      rethrow();
    }
    buffer.filled = std::move(evicted->second);
    evicted_.erase(evicted);
    return;
  }
  const std::string& header = layout_.files()[block.file].header;
  const auto size = static_cast<std::int64_t>(header.size());
  if (!creator_ || block.begin >= size) return;
  const std::int64_t part = std::min(size, block.end) - block.begin;
  std::memcpy(buffer.memory, header.data() + block.begin, static_cast<std::size_t>(part));
  add_range(buffer, 0, part);
}

void BlockWriter::add_range(Buffer& buffer, std::int64_t begin, std::int64_t end) {
  Ranges& filled = buffer.filled;
  auto next = std::upper_bound(filled.begin(), filled.end(), std::pair{begin, INT64_MAX});
  const auto before = next == filled.begin() ? filled.end() : next - 1;
  if ((before != filled.end() && before->second > begin) ||
      (next != filled.end() && next->first < end)) {
    const FilePiece block = layout_.block(buffer.block);
    throw InternalError(directory_ + "/" + layout_.files()[block.file].name + ": " +
                        layout_.describe({block.file, block.begin + begin, block.begin + end}) +
                        " is put twice");
  }
  if (before != filled.end() && before->second == begin) {
    before->second = end;
    if (next != filled.end() && next->first == end) {
      before->second = next->second;
      filled.erase(next);
    }
  } else if (next != filled.end() && next->first == end) {
    next->first = begin;
  } else {
    filled.insert(next, {begin, end});
  }
}

bool BlockWriter::is_full(const Buffer& buffer) const {
  return buffer.filled.size() == 1 && buffer.filled[0].first == 0 &&
         buffer.filled[0].second == layout_.block(buffer.block).size_bytes();
}

void BlockWriter::release_if_full(Buffer& buffer) {
  if (buffer.users == 0 && is_full(buffer)) {
    buffer.writing = true;
    queue_.push_back(&buffer);
  }
  changed_.notify_all();
}

/// Queues the buffer untouched for longest to be written as it is; false if all are being filled.
bool BlockWriter::evict_one() {
  Buffer* oldest = nullptr;
  for (const auto& [block, buffer] : filling_)
    if (buffer->users == 0 && !buffer->writing &&
        (oldest == nullptr || buffer->touched < oldest->touched))
      oldest = buffer;
  if (oldest == nullptr) return false;
  oldest->writing = true;
  queue_.push_back(oldest);
  changed_.notify_all();
  return true;
}

void BlockWriter::fail(std::exception_ptr error) {
  if (error_ == nullptr) error_ = std::move(error);
  queue_.clear();
  changed_.notify_all();
}

void BlockWriter::rethrow() const {
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void BlockWriter::run() {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    Buffer& buffer = *queue_.front();
    queue_.pop_front();
    ++writing_;
    write(buffer, lock);
    --writing_;
    changed_.notify_all();
  }
}

void BlockWriter::write(Buffer& buffer, Lock& lock) {
  const FilePiece block = layout_.block(buffer.block);
  const bool whole = is_full(buffer);
  const std::span<const std::byte> data(buffer.memory,
                                        static_cast<std::size_t>(block.size_bytes()));
  lock.unlock();
  Hash128 hash;
  std::exception_ptr error;
  try {
    if (whole) hash = hash_128(data);
    open_[block.file]->write(block.begin, data);
    beat_();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error != nullptr) {
    fail(error);
    return;
  }
  bytes_written_ += block.size_bytes();
  if (whole) {
    const std::size_t index = index_of(buffer.block);
    hashes_[index] = {buffer.block, hash};
    done_[index] = true;
  } else {
    evicted_[buffer.block] = std::move(buffer.filled);
  }
  filling_.erase(buffer.block);
  buffer.writing = false;
  free_.push_back(&buffer);
}

void BlockWriter::check_complete() const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (done_[i]) continue;
    const FilePiece block = layout_.block(blocks_[i]);
    Ranges filled;
    if (const auto it = filling_.find(blocks_[i]); it != filling_.end())
      filled = it->second->filled;
    if (const auto it = evicted_.find(blocks_[i]); it != evicted_.end()) filled = it->second;
    const std::int64_t begin = filled.empty() || filled[0].first > 0 ? 0 : filled[0].second;
    const auto next = std::upper_bound(filled.begin(), filled.end(), std::pair{begin, INT64_MAX});
    const std::int64_t end = next == filled.end() ? block.size_bytes() : next->first;
    throw InternalError(directory_ + "/" + layout_.files()[block.file].name + ": nobody put " +
                        layout_.describe({block.file, block.begin + begin, block.begin + end}));
  }
}

std::vector<BlockHash> BlockWriter::finish() {
  Lock lock(mutex_);
  rethrow();
  if (creator_) {  // a block with nothing but header has had no piece
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const FilePiece block = layout_.block(blocks_[i]);
      const auto header = static_cast<std::int64_t>(layout_.files()[block.file].header.size());
      if (block.end <= header && !done_[i] && !filling_.contains(blocks_[i]))
        release_if_full(open_block(blocks_[i], lock));
    }
  }
  changed_.wait(lock, [this] { return queue_.empty() && writing_ == 0; });
  rethrow();
  check_complete();
  try {
    for (const auto& file : open_)
      if (file != nullptr) {
        file->sync();
        beat_();
      }
  } catch (...) {
    fail(std::current_exception());
    rethrow();
  }
  return hashes_;
}

std::int64_t BlockWriter::bytes_written() const {
  const std::lock_guard lock(mutex_);
  return bytes_written_;
}

}  // namespace strata::train
