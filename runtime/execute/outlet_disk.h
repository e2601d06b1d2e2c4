// A disk tier with a stretch that has no disk behind it: what Programs write there is given to
// somebody, who takes it where it belongs.
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

/// Borrows the disk; null where all of the space is outlet. Programs see the outlet as a gap in the
/// disk, whose bytes from there on follow the gap.
class OutletDisk final : public Disk {
 public:
  /// Is given the offset of a write from the outlet's beginning and its bytes, on the thread that
  /// starts it; they are its own until it returns. Throws nothing.
  using Receiver = std::function<void(std::int64_t, std::span<const std::byte>)>;

  OutletDisk(Disk* disk, Outlet outlet);

  /// Sets who receives from now on; null: writes are lost. Waits for the one before.
  void set_receiver(Receiver receiver);

  [[nodiscard]] std::int64_t bytes() const override;
  /// A transfer lies in the outlet or outside. The outlet is not read.
  Ticket start_read(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  Ticket start_write(std::int64_t offset, std::span<const std::byte> from,
                     std::string_view what) override;
  void discard(std::int64_t offset, std::int64_t bytes) override;
  void wait(Ticket ticket) override;
  void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  void write_bytes(std::int64_t offset, std::span<const std::byte> from,
                   std::string_view what) override;
  /// With what was given away.
  [[nodiscard]] DiskCounters counters() const override;

 private:
  /// The disk, for a transfer of `bytes` at `offset`, and the offset there.
  [[nodiscard]] Disk& disk_behind(std::int64_t& offset, std::size_t bytes) const;

  Disk* disk_;
  Outlet outlet_;
  std::mutex mutex_;  ///< of the receiver, held while it takes
  Receiver receiver_;
  std::atomic<std::int64_t> given_bytes_ = 0;
};

}  // namespace strata::runtime
