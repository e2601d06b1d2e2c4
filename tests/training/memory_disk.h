// A disk tier in memory, for tests of a step's arithmetic that do not test the store.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "core/check.h"
#include "runtime/program/arena_alignment.h"
#include "runtime/program/disk.h"

namespace strata::tests {

class MemoryDisk final : public runtime::Disk {
 public:
  explicit MemoryDisk(std::int64_t bytes) : space_(static_cast<std::size_t>(bytes)) {}
  [[nodiscard]] std::int64_t bytes() const override {
    return static_cast<std::int64_t>(space_.size());
  }
  Ticket start_read(std::int64_t offset, std::span<std::byte> to, std::string_view what) override {
    check(offset, to.data(), to.size(), what);
    std::lock_guard lock(mutex_);
    under_way_[next_] = {offset, to, false};
    counters_.read_bytes += static_cast<std::int64_t>(to.size());
    return next_++;
  }
  Ticket start_write(std::int64_t offset, std::span<const std::byte> from,
                     std::string_view what) override {
    check(offset, from.data(), from.size(), what);
    std::lock_guard lock(mutex_);
    under_way_[next_] = {offset, {const_cast<std::byte*>(from.data()), from.size()}, true};
    counters_.written_bytes += static_cast<std::int64_t>(from.size());
    return next_++;
  }
  /// Moves the bytes only now, as late as allowed, so that reads before the wait are caught.
  void wait(Ticket ticket) override {
    std::lock_guard lock(mutex_);
    const Transfer transfer = under_way_.at(ticket);
    under_way_.erase(ticket);
    if (transfer.write)
      write_now(transfer.offset, transfer.memory);
    else
      std::memcpy(transfer.memory.data(), space_.data() + transfer.offset, transfer.memory.size());
  }
  void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view) override {
    std::lock_guard lock(mutex_);
    std::memcpy(to.data(), space_.data() + offset, to.size());
  }
  void write_bytes(std::int64_t offset, std::span<const std::byte> from,
                   std::string_view) override {
    std::lock_guard lock(mutex_);
    write_now(offset, from);
  }
  [[nodiscard]] runtime::DiskCounters counters() const override {
    std::lock_guard lock(mutex_);
    return counters_;
  }
  /// Returns the bytes from the disk's start to the end of the last one that was ever written.
  [[nodiscard]] std::int64_t written_end() const {
    std::lock_guard lock(mutex_);
    return written_end_;
  }

 private:
  struct Transfer {
    std::int64_t offset;
    std::span<std::byte> memory;
    bool write;
  };
  void write_now(std::int64_t offset, std::span<const std::byte> from) {
    std::memcpy(space_.data() + offset, from.data(), from.size());
    written_end_ = std::max(written_end_, offset + static_cast<std::int64_t>(from.size()));
  }
  void check(std::int64_t offset, const std::byte* memory, std::size_t size,
             std::string_view what) const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    STRATA_CHECK(offset % runtime::kDiskAlignment == 0 && address % runtime::kDiskAlignment == 0 &&
                     size % runtime::kDiskAlignment == 0 &&
                     offset + static_cast<std::int64_t>(size) <= bytes(),
                 what, offset, size);
  }

  mutable std::mutex mutex_;
  std::vector<std::byte> space_;
  std::map<Ticket, Transfer> under_way_;
  Ticket next_ = 0;
  runtime::DiskCounters counters_;
  std::int64_t written_end_ = 0;
};

}  // namespace strata::tests
