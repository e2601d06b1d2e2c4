// One rank's hand in writing a checkpoint: pieces come in, whole blocks go out.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/file_system.h"
#include "train/checkpoint/checkpoint_layout.h"
#include "train/checkpoint/manifest.h"

namespace strata::train {

inline constexpr std::int64_t kBlockWriterBytes = std::int64_t{32} << 20;

struct BlockWriterOptions {
  int threads = 4;  ///< hash and write; as many writes are under way
  /// Bytes of buffers, rounded down to blocks; at least two. More let pieces come less in order.
  std::int64_t memory_bytes = kBlockWriterBytes;
  /// Where they lie, at least as many bytes, at a multiple of kDirectAlignmentBytes, which the
  /// writer has for itself; null: in memory of its own.
  std::byte* memory = nullptr;
  Caching caching = Caching::direct;
};

/// The creator is constructed before the others (of rank 0): it makes the files at full size and
/// writes the headers. `files` and `layout` live longer than the writer.
class BlockWriter {
 public:
  enum class Role : std::uint8_t { creator, helper };

  /// `blocks`: those that this rank writes (BlockAssignment::blocks_of). Throws IoError; a full
  /// disk shows in the creator, before anything is written where the system knows its free space.
  BlockWriter(FileSystem& files, std::string directory, const CheckpointLayout& layout,
              std::vector<std::int64_t> blocks, Role role, const BlockWriterOptions& options = {});
  /// Without finish() what was written is worth nothing.
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  /// Copies the bytes from `begin` of a file, which lie in blocks of this rank and were not put
  /// before. In any order: when all buffers hold incomplete blocks, one goes to the disk as it is
  /// and comes back later. Any thread. Waits for memory; throws the first IoError of any write.
  void put(std::size_t file, std::int64_t begin, std::span<const std::byte> data);

  /// Everything is on the disk. Hashes of this rank's blocks, ascending. Throws the first IoError,
  /// or InternalError when bytes are missing. After an error nothing is synced, ever: what an fsync
  /// reports once it does not report again, so the files are lost and saving begins anew.
  std::vector<BlockHash> finish();

  /// Written so far; more than the blocks' sizes where pieces came too much out of order.
  [[nodiscard]] std::int64_t bytes_written() const;

 private:
  /// Parts of a block, in bytes from its beginning: ascending, disjoint, not adjacent.
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  struct Buffer {
    std::byte* memory = nullptr;
    std::int64_t block = -1;
    Ranges filled;
    int users = 0;  ///< threads that copy into it
    bool writing = false;
    std::uint64_t touched = 0;
  };
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Lock = std::unique_lock<std::mutex>;

  void require_space() const;
  std::byte* allocate(std::size_t bytes);
  void open_files(Role role, Caching caching);
  Buffer& open_block(std::int64_t block, Lock& lock);
  void fill_at_opening(Buffer& buffer);
  void add_range(Buffer& buffer, std::int64_t begin, std::int64_t end);
  void release_if_full(Buffer& buffer);
  bool evict_one();
  void fail(std::exception_ptr error);
  void rethrow() const;
  void run();
  void write(Buffer& buffer, Lock& lock);
  void check_complete() const;
  [[nodiscard]] bool is_full(const Buffer& buffer) const;
  [[nodiscard]] std::size_t index_of(std::int64_t block) const;

  FileSystem& files_;
  std::string directory_;
  const CheckpointLayout& layout_;
  std::vector<std::int64_t> blocks_;
  bool creator_;
  std::vector<std::unique_ptr<StorageFile>> open_;  ///< by file; null where nothing is to write

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_;
  std::unordered_map<std::int64_t, Buffer*> filling_;  ///< by block
  std::unordered_map<std::int64_t, Ranges> evicted_;   ///< on the disk in part, by block
  std::deque<Buffer*> queue_;
  int writing_ = 0;
  std::vector<BlockHash> hashes_;  ///< parallel to blocks_
  std::vector<bool> done_;
  std::int64_t bytes_written_ = 0;
  std::uint64_t clock_ = 0;
  std::exception_ptr error_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace strata::train
