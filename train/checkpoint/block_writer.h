// Writes one rank's blocks of a checkpoint: collects pieces, and writes whole blocks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/aligned_memory.h"
#include "core/beat.h"
#include "core/file_system.h"
#include "train/checkpoint/checkpoint_layout.h"
#include "train/checkpoint/manifest.h"

namespace strata::train {

inline constexpr std::int64_t kBlockWriterBytes = std::int64_t{32} << 20;

struct BlockWriterOptions {
  int threads = 4;  ///< threads that hash and write; as many writes are under way
  /// Bytes of buffers, rounded down to blocks, at least two. More allow for pieces in less order.
  std::int64_t memory_bytes = kBlockWriterBytes;
  /// Memory for these buffers, which the writer has for itself: at least as many bytes, at a
  /// multiple of kDirectAlignmentBytes; null: the writer allocates its own.
  std::byte* memory = nullptr;
  Caching caching = Caching::direct;
  Beat beat = {};  ///< told of each block that is written and each file that is synced
};

/// Rank 0's writer is the creator: constructed before the others, it makes the files at full size
/// and writes the headers. `files` and `layout` outlive the writer.
class BlockWriter {
 public:
  enum class Role : std::uint8_t { creator, helper };

  /// `blocks`: those that this rank writes (BlockAssignment::blocks_of). Throws IoError; the
  /// creator does for a full disk, before anything is written if the system knows its free space.
  BlockWriter(FileSystem& files, std::string directory, const CheckpointLayout& layout,
              std::vector<std::int64_t> blocks, Role role, const BlockWriterOptions& options = {});
  /// Discards what was written unless finish() has returned.
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  /// Copies bytes into a file from `begin` on; they lie in blocks of this rank and were not put
  /// before. Pieces may come in any order: when all buffers hold incomplete blocks, one is written
  /// as it is and read again later. Any thread. Waits for memory; throws the first IoError of any
  /// write.
  void put(std::size_t file, std::int64_t begin, std::span<const std::byte> data);

  /// Writes and syncs everything; returns the hashes of this rank's blocks, ascending. Throws the
  /// first IoError, or InternalError if bytes are missing. After an error nothing is ever synced:
  /// fsync reports an error only once, so the files are lost and the save must begin anew.
  std::vector<BlockHash> finish();

  /// Bytes written so far; more than the blocks' sizes if pieces came too much out of order.
  [[nodiscard]] std::int64_t bytes_written() const;

 private:
  /// Filled parts of a block, in bytes from its beginning: ascending, disjoint, not adjacent.
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  struct Buffer {
    std::byte* memory = nullptr;
    std::int64_t block = -1;
    Ranges filled;
    int users = 0;  ///< threads that are copying into it
    bool writing = false;
    std::uint64_t touched = 0;
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
  Beat beat_;
  std::vector<std::unique_ptr<StorageFile>> open_;  ///< files of the layout; null: not written here

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<AlignedMemory> memory_;  ///< unless the caller gave some
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_;
  std::unordered_map<std::int64_t, Buffer*> filling_;  ///< buffers that are not full, by block
  std::unordered_map<std::int64_t, Ranges> evicted_;   ///< written parts of evicted blocks
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
