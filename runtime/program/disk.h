// What executors and the engine know of the disk tier: one flat space of bytes behind which files
// lie. offload/ implements it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace strata::runtime {

/// Bytes of transfers since the start.
struct DiskCounters {
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
};

/// Offsets, sizes and addresses of transfers are multiples of kDiskAlignment (arena_alignment.h).
/// Any thread may call. Callers see to it that no write is under way together with another transfer
/// of the same bytes. Bytes never written read as zero.
class Disk {
 public:
  /// A transfer that was started; waited for once.
  using Ticket = std::int64_t;

  virtual ~Disk() = default;
  /// Size of the space, reserved as a whole before the first transfer.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
  /// Starts a transfer. Its memory, and `what`, its name in errors, must live until the ticket was
  /// waited for. May wait while too many are under way.
  virtual Ticket start_read(std::int64_t offset, std::span<std::byte> to,
                            std::string_view what) = 0;
  virtual Ticket start_write(std::int64_t offset, std::span<const std::byte> from,
                             std::string_view what) = 0;
  /// Drops these bytes and all that was written together with any of them: they may be written with
  /// other borders, and nobody asks what they held.
  virtual void discard(std::int64_t offset, std::int64_t bytes) {
    (void)offset;
    (void)bytes;
  }
  /// Waits for the transfer. Throws IoError naming path, offset, bytes and `what` when it failed,
  /// DataError when what was read is not what was written.
  virtual void wait(Ticket ticket) = 0;
  /// Any bytes, at once: for what happens between steps. Throw as `wait`.
  virtual void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) = 0;
  virtual void write_bytes(std::int64_t offset, std::span<const std::byte> from,
                           std::string_view what) = 0;
  [[nodiscard]] virtual DiskCounters counters() const = 0;
};

}  // namespace strata::runtime
