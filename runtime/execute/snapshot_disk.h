// A disk tier that can hold its contents still: each record has two places, and while a snapshot is
// held, new writes of a record go to the place that the snapshot does not use.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/program/disk.h"

namespace strata::runtime {

/// Borrows the disk. Programs see only the space before the second places, at its own offsets.
class SnapshotDisk final : public Disk {
 public:
  /// A range of the space that is moved, and written, as a whole.
  struct Record {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;  ///< a multiple of kDiskAlignment
  };

  /// `records` are ascending and disjoint, and end before `second_places`, where the disk has room
  /// for all of them once more.
  SnapshotDisk(Disk& disk, const std::vector<Record>& records, std::int64_t second_places);

  /// Freezes what read_held reads, until release(). No write may be under way.
  void hold();
  void release();
  /// Reads a part of one record as the snapshot holds it. May be called on any thread.
  void read_held(std::int64_t offset, std::span<std::byte> to, std::string_view what);

  [[nodiscard]] std::int64_t bytes() const override { return second_places_; }
  Ticket start_read(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  Ticket start_write(std::int64_t offset, std::span<const std::byte> from,
                     std::string_view what) override;
  void discard(std::int64_t offset, std::int64_t bytes) override { disk_.discard(offset, bytes); }
  void wait(Ticket ticket) override { disk_.wait(ticket); }
  void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) override;
  void write_bytes(std::int64_t offset, std::span<const std::byte> from,
                   std::string_view what) override;
  /// Does not include what read_held reads.
  [[nodiscard]] DiskCounters counters() const override;

 private:
  struct Kept {
    Record record;
    std::int64_t second = 0;  ///< offset of the second place
    bool now_second = false;  ///< true if the newest state is in the second place
    bool held_second = false;
  };

  /// Returns nullptr if `offset` is in no record. A transfer must not leave its record.
  [[nodiscard]] Kept* find(std::int64_t offset, std::size_t bytes);
  static std::int64_t place(const Kept& kept, bool second, std::int64_t offset) {
    return second ? kept.second + (offset - kept.record.offset) : offset;
  }
  [[nodiscard]] std::int64_t where_to_read(std::int64_t offset, std::size_t bytes);
  [[nodiscard]] std::int64_t where_to_write(std::int64_t offset, std::size_t bytes);

  Disk& disk_;
  std::int64_t second_places_;
  mutable std::mutex mutex_;
  std::vector<Kept> records_;
  bool holds_ = false;
  std::int64_t held_bytes_read_ = 0;
};

}  // namespace strata::runtime
