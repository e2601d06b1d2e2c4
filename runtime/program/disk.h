// The disk tier as executors and the engine see it: one flat space of bytes, kept in files.
// offload/ implements it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace strata::runtime {

/// Bytes transferred since the start.
struct DiskCounters {
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
};

/// Offsets, sizes and addresses of transfers are multiples of kDiskAlignment (arena_alignment.h).
/// Any thread may call. Callers ensure that no write is under way together with another transfer of
/// the same bytes. Bytes never written read as zero.
class Disk {
 public:
  /// A transfer that was started; it must be waited for exactly once.
  using Ticket = std::int64_t;

  virtual ~Disk() = default;
  /// Returns the size of the space, reserved as a whole before the first transfer.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
  /// Start a transfer. Its memory, and its name in errors, `what`, must live until the ticket has
  /// been waited for. Both may wait while too many transfers are under way.
  virtual Ticket start_read(std::int64_t offset, std::span<std::byte> to,
                            std::string_view what) = 0;
  virtual Ticket start_write(std::int64_t offset, std::span<const std::byte> from,
                             std::string_view what) = 0;
  /// Drops these bytes, and all bytes written together with any of them. They may then be written
  /// with other borders; what they held is lost.
  virtual void discard(std::int64_t offset, std::int64_t bytes) {
    (void)offset;
    (void)bytes;
  }
  /// Waits for the transfer. Throws IoError naming path, offset, bytes and `what` if it failed, and
  /// DataError if the bytes read are not those written.
  virtual void wait(Ticket ticket) = 0;
  /// Transfer any bytes and wait; meant for work between steps. Throw as `wait` does.
  virtual void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) = 0;
  virtual void write_bytes(std::int64_t offset, std::span<const std::byte> from,
                           std::string_view what) = 0;
  [[nodiscard]] virtual DiskCounters counters() const = 0;
};

}  // namespace strata::runtime
