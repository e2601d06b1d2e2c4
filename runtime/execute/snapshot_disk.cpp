#include "runtime/execute/snapshot_disk.h"

#include <algorithm>

#include "core/check.h"
#include "core/round_up.h"
#include "runtime/program/arena_alignment.h"

namespace strata::runtime {

SnapshotDisk::SnapshotDisk(Disk& disk, const std::vector<Record>& records,
                           std::int64_t second_places)
    : disk_(disk), second_places_(second_places) {
  std::int64_t end = 0, second = second_places;
  for (const Record& record : records) {
    STRATA_CHECK(record.offset >= end && record.bytes % kDiskAlignment == 0, record.offset,
                 record.bytes);
    end = record.offset + record.bytes;
    records_.push_back({.record = record, .second = second});
    second += record.bytes;
  }
  STRATA_CHECK(end <= second_places && second <= disk.bytes(), end, second_places, second,
               disk.bytes());
}

void SnapshotDisk::hold() {
  const std::lock_guard lock(mutex_);
  STRATA_CHECK(!holds_, "a snapshot is held already");
  holds_ = true;
  for (Kept& kept : records_) kept.held_second = kept.now_second;
}

void SnapshotDisk::release() {
  const std::lock_guard lock(mutex_);
  holds_ = false;
}

SnapshotDisk::Kept* SnapshotDisk::find(std::int64_t offset, std::size_t bytes) {
  const auto next = std::ranges::upper_bound(records_, offset, {},
                                             [](const Kept& kept) { return kept.record.offset; });
  if (next == records_.begin()) return nullptr;
  Kept& kept = *std::prev(next);
  const std::int64_t end = kept.record.offset + kept.record.bytes;
  if (offset >= end) return nullptr;
  STRATA_CHECK(offset + static_cast<std::int64_t>(bytes) <= end, "a transfer leaves its record",
               offset, bytes, end);
  return &kept;
}

std::int64_t SnapshotDisk::where_to_read(std::int64_t offset, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const Kept* kept = find(offset, bytes);
  return kept == nullptr ? offset : place(*kept, kept->now_second, offset);
}

std::int64_t SnapshotDisk::where_to_write(std::int64_t offset, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Kept* kept = find(offset, bytes);
  if (kept == nullptr) return offset;
  if (holds_ && kept->now_second == kept->held_second) {
    STRATA_CHECK(static_cast<std::int64_t>(bytes) == kept->record.bytes,
                 "a record that a snapshot holds is written in parts", offset, bytes);
    kept->now_second = !kept->now_second;
  }
  return place(*kept, kept->now_second, offset);
}

void SnapshotDisk::read_held(std::int64_t offset, std::span<std::byte> to, std::string_view what) {
  std::int64_t from = 0;
  {
    const std::lock_guard lock(mutex_);
    const Kept* kept = find(offset, to.size());
    STRATA_CHECK(holds_ && kept != nullptr, what, "is in no snapshot");
    from = place(*kept, kept->held_second, offset);
    const std::int64_t end = offset + static_cast<std::int64_t>(to.size());
    held_bytes_read_ += round_up(end, kDiskAlignment) - offset / kDiskAlignment * kDiskAlignment;
  }
  disk_.read_bytes(from, to, what);
}

Disk::Ticket SnapshotDisk::start_read(std::int64_t offset, std::span<std::byte> to,
                                      std::string_view what) {
  return disk_.start_read(where_to_read(offset, to.size()), to, what);
}

Disk::Ticket SnapshotDisk::start_write(std::int64_t offset, std::span<const std::byte> from,
                                       std::string_view what) {
  return disk_.start_write(where_to_write(offset, from.size()), from, what);
}

void SnapshotDisk::read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) {
  disk_.read_bytes(where_to_read(offset, to.size()), to, what);
}

void SnapshotDisk::write_bytes(std::int64_t offset, std::span<const std::byte> from,
                               std::string_view what) {
  disk_.write_bytes(where_to_write(offset, from.size()), from, what);
}

DiskCounters SnapshotDisk::counters() const {
  DiskCounters all = disk_.counters();
  const std::lock_guard lock(mutex_);
  all.read_bytes -= held_bytes_read_;
  return all;
}

}  // namespace strata::runtime
