// The disk tier on one or more devices: striped, with checksums, many transfers at once.
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
#include "offload/nvme/transfer_memory.h"
#include "offload/nvme/workers.h"
#include "runtime/program/disk.h"

namespace strata::offload {

/// One file of a store, and the BlockIo that transfers its bytes.
struct StoreDevice {
  std::string path;  ///< directory, for messages
  std::unique_ptr<BlockIo> io;
};

/// Bytes never written read as zero without touching a device. Worker threads hash written bytes
/// (XXH3-64) while the transfer is under way, and compare hashes after a read, before wait returns;
/// bytes that differ are read once more, then wait throws DataError. Hashes are kept per written
/// extent (ExtentTable): the first time that a part of an extent is read or overwritten costs an
/// extra read of at most 1 MiB at each end. Repeated transfers allocate nothing.
class NvmeStore final : public runtime::Disk {
 public:
  /// `devices` must hold their shares of `bytes` (Stripes::device_bytes).
  NvmeStore(std::vector<StoreDevice> devices, std::int64_t bytes, const StoreOptions& options);
  /// Waits for requests under way, unless they are stuck, and drops those that have not begun.
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
  /// Throws also IoError when one of its requests, or an earlier one, has been under way for longer
  /// than `stuck_after`: the transfer goes on, its memory must stay; wait may be called again.
  void wait(Ticket ticket) override;
  /// Counts the bytes of transfers that succeeded, zeros included.
  [[nodiscard]] runtime::DiskCounters counters() const override;

  /// Reads or writes any range of bytes, one small piece after the other, for weights, digests and
  /// checkpoints. Nothing of the caller's is in use after an error. Any thread may call. A range
  /// that is written here may share blocks with other such ranges, but not with transfers.
  void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  void write_bytes(std::int64_t offset, std::span<const std::byte> from,
                   std::string_view what) override;

  /// Registers ranges (aligned to runtime::kDiskAlignment) that transfers will use, instead of
  /// earlier ones, so that the kernel need not look up their pages each time. They must live until
  /// the store is gone or others are registered. Transfers with other memory stay legal. No
  /// transfer may be under way. Returns false if the system refuses; notes() says why then.
  bool register_memory(std::span<const std::span<std::byte>> ranges);

  void use(const TransferSettings& settings);
  [[nodiscard]] TransferSettings settings() const;
  /// Makes the store as new: all bytes read as zero, and the counters are zero. No transfer may be
  /// under way.
  void forget();

  /// Messages that the user should see once, about fallbacks. register_memory may add some.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  void add_note(const std::string& note);
  [[nodiscard]] int devices() const { return static_cast<int>(lanes_.size()); }
  /// Descriptor of a device's open file; -1: none.
  [[nodiscard]] int file(int device) const {
    return lanes_[static_cast<std::size_t>(device)]->file();
  }

 private:
  friend class TransferMemory;

  /// Splits the extent across `border`, if any.
  void isolate(std::int64_t border, std::string_view what);
  void check_range(std::int64_t offset, const std::byte* memory, std::size_t bytes,
                   std::string_view what) const;
  /// Starts a transfer. No extent may cross the range's ends.
  Ticket start(Direction direction, std::int64_t offset, std::byte* memory, std::int64_t bytes,
               std::string_view what);
  /// Waits for room, then returns a transfer in use, with one piece remaining.
  Transfer& admit(Direction direction, const std::byte* memory, std::int64_t bytes);
  TransferPiece& take_piece(Transfer& transfer);
  void push_pieces(Transfer& transfer, std::int64_t offset, std::byte* memory, std::int64_t bytes,
                   std::string_view what);
  Lane& lane_of(const TransferPiece& piece);
  void hash(TransferPiece& piece);
  void verify(TransferPiece& piece);
  /// Called on a lane's thread.
  void transferred(TransferPiece& piece, int error_number);
  /// Ends one of the piece's `remaining` jobs.
  void done(TransferPiece& piece, std::exception_ptr error = nullptr);
  /// Waits for transfers with this memory and drops their errors. Takes the memory if one is stuck
  /// or if it is registered; what is left in `held` may be freed.
  void retire(HeldMemoryList& held) noexcept;
  // Call these with mutex_ held.
  /// Returns a transfer with this memory that nobody has waited for to its end; null: none.
  const Transfer* user_of(std::span<const std::byte> memory);
  void piece_ended(Transfer& transfer);
  Transfer& find(Ticket ticket);
  void recycle(Transfer& transfer);
  void throw_if_stuck(Transfer& transfer) const;
  [[nodiscard]] const std::string& path_of(const TransferPiece& piece) const;

  StoreOptions options_;
  std::int64_t bytes_;
  Stripes stripes_;
  std::vector<std::string> paths_;
  std::vector<std::string> notes_;
  ExtentTable extents_;
  std::mutex isolate_mutex_;
  std::shared_mutex bytes_mutex_;  // excludes read_bytes from write_bytes

  mutable std::mutex mutex_;  // guards what follows
  TransferSettings settings_;
  std::condition_variable room_;
  Pool<Transfer> transfers_;
  Pool<TransferPiece> pieces_;
  int unfinished_ = 0;
  std::vector<std::span<std::byte>> registered_;
  /// Memory that retire took; lanes that are abandoned share it.
  std::shared_ptr<HeldMemoryList> kept_ = std::make_shared<HeldMemoryList>();
  runtime::DiskCounters counters_;

  Workers workers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace strata::offload
