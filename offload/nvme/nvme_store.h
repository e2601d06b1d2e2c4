// The disk tier on one or more devices: striped, checked, many transfers at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "offload/nvme/block_io.h"
#include "offload/nvme/extent_table.h"
#include "offload/nvme/lane.h"
#include "offload/nvme/pool.h"
#include "offload/nvme/store_options.h"
#include "offload/nvme/stripes.h"
#include "offload/nvme/transfer.h"
#include "offload/nvme/workers.h"
#include "runtime/program/disk.h"

namespace strata::offload {

/// One file of a store and what transfers its bytes.
struct StoreDevice {
  std::string path;  ///< for messages
  std::unique_ptr<BlockIo> io;
};

/// Bytes never written read as zero without touching a device. What is written is hashed by worker
/// threads (XXH3-64) while it is under way and compared when it is read, before wait returns; bytes
/// that differ are read once more, then wait throws DataError. Hashes are kept per written extent
/// (ExtentTable): reading or overwriting a part of what was written at once costs one extra read
/// of at most 1 MiB at each end, the first time. Transfers that were made before allocate nothing.
class NvmeStore final : public runtime::Disk {
 public:
  /// `devices` hold their share of `bytes` (Stripes::device_bytes).
  NvmeStore(std::vector<StoreDevice> devices, std::int64_t bytes, const StoreOptions& options);
  /// Requests under way are waited for, unless they are stuck; those that had not begun are
  /// dropped.
  ~NvmeStore() override;
  NvmeStore(const NvmeStore&) = delete;
  NvmeStore& operator=(const NvmeStore&) = delete;

  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }
  Ticket start_read(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  Ticket start_write(std::int64_t offset, std::span<const std::byte> from,
                     std::string_view what) override;
  void discard(std::int64_t offset, std::int64_t bytes) override {
    extents_.discard(offset, bytes);
  }
  /// Also IoError when a request of it, or one before it, has been under way for longer than
  /// `stuck_after`: the transfer goes on, its memory must stay, and wait may be called again.
  void wait(Ticket ticket) override;
  /// Bytes of transfers that succeeded, zeros included.
  [[nodiscard]] runtime::DiskCounters counters() const override;

  /// Any range of bytes, one small piece after the other: for weights, digests, checkpoints. Any
  /// thread; a range that is written here may share blocks with other ranges, but not with
  /// transfers.
  void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  void write_bytes(std::int64_t offset, std::span<const std::byte> from,
                   std::string_view what) override;

  /// Ranges (aligned to runtime::kDiskAlignment) that transfers will use, instead of those named
  /// before: the kernel then need not look up their pages each time. They stay until the store is
  /// gone or others are named. Transfers elsewhere stay legal. No transfer may be under way. Where
  /// the system refuses, transfers go on unregistered; false then, and notes() says why.
  bool register_memory(std::span<const std::span<std::byte>> ranges);

  void use(const TransferSettings& settings);
  [[nodiscard]] TransferSettings settings() const;
  /// Makes the store as new: all bytes read as zero, the counters are zero. No transfer may be
  /// under way.
  void forget();

  /// What the user should know once: a fallback was taken. Grows with register_memory.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  void add_note(const std::string& note);
  [[nodiscard]] int devices() const { return static_cast<int>(lanes_.size()); }
  /// The open file of a device, -1 where there is none.
  [[nodiscard]] int file(int device) const {
    return lanes_[static_cast<std::size_t>(device)]->file();
  }

 private:
  /// No extent reaches across `border` afterwards.
  void isolate(std::int64_t border, std::string_view what);
  void check_range(std::int64_t offset, const std::byte* memory, std::size_t bytes,
                   std::string_view what) const;
  /// No extent crosses the range's ends.
  Ticket start(Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes,
               std::string_view what);
  /// Waits for room. In use, with one piece remaining.
  Transfer& admit(Direction direction, std::int64_t bytes);
  Piece& take_piece(Transfer& transfer);
  void push_pieces(Transfer& transfer, std::int64_t offset, std::byte* memory, std::int64_t bytes,
                   std::string_view what);
  Lane& lane_of(const Piece& piece);
  void hash(Piece& piece);
  void verify(Piece& piece);
  /// On a lane's thread.
  void transferred(Piece& piece, int error_number);
  /// One of the piece's `remaining` is done.
  void done(Piece& piece, std::exception_ptr error = nullptr);
  // With mutex_ held:
  void piece_ended(Transfer& transfer);
  Transfer& find(Ticket ticket);
  void recycle(Transfer& transfer);
  void throw_if_stuck(const Transfer& transfer) const;
  [[nodiscard]] const std::string& path_of(const Piece& piece) const;

  StoreOptions options_;
  std::int64_t bytes_;
  Stripes stripes_;
  std::vector<std::string> paths_;
  std::vector<std::string> notes_;
  ExtentTable extents_;
  std::mutex isolate_mutex_;
  std::shared_mutex bytes_mutex_;  // of read_bytes and write_bytes

  mutable std::mutex mutex_;  // of what follows
  TransferSettings settings_;
  std::condition_variable room_;
  Pool<Transfer> transfers_;
  Pool<Piece> pieces_;
  int unfinished_ = 0;
  runtime::DiskCounters counters_;

  Workers workers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace strata::offload
