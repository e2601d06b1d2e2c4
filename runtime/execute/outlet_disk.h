// A disk tier with a range that has no disk behind it: what Programs write there is given to a
// receiver.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>

#include "runtime/program/disk.h"
#include "runtime/program/outlet.h"

namespace strata::runtime {

/// Borrows the disk; null if all of the space is outlet. Programs see the outlet as a gap in the
/// disk: the disk's bytes from there on follow the gap.
class OutletDisk final : public Disk {
 public:
  /// Gets the offset of a write from the outlet's beginning, and its bytes, on the thread that
  /// starts the write. The bytes are valid until it returns. Must not throw.
  using Receiver = std::function<void(std::int64_t, std::span<const std::byte>)>;

  OutletDisk(Disk* disk, Outlet outlet);

  /// Sets the receiver from now on; null: writes are lost. Waits until the one before has returned.
  void set_receiver(Receiver receiver);

  [[nodiscard]] std::int64_t bytes() const override;
  /// A transfer lies wholly inside or outside the outlet. The outlet cannot be read.
  Ticket start_read(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  Ticket start_write(std::int64_t offset, std::span<const std::byte> from,
                     std::string_view what) override;
  void discard(std::int64_t offset, std::int64_t bytes) override;
  void wait(Ticket ticket) override;
  void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  void write_bytes(std::int64_t offset, std::span<const std::byte> from,
                   std::string_view what) override;
  /// Includes the bytes given to receivers.
  [[nodiscard]] DiskCounters counters() const override;

 private:
  /// Returns the disk for a transfer of `bytes` at `offset`; changes `offset` to the disk's own.
  [[nodiscard]] Disk& disk_behind(std::int64_t& offset, std::size_t bytes) const;

  Disk* disk_;
  Outlet outlet_;
  std::mutex mutex_;  ///< guards receiver_, held while it is called
  Receiver receiver_;
  std::atomic<std::int64_t> given_bytes_ = 0;
};

}  // namespace strata::runtime
