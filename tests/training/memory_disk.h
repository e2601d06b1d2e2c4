// A disk tier in memory, for whole steps whose arithmetic is under test and not the store.
#pragma once

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/check.h"
#include "runtime/disk.h"

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
    std::memcpy(to.data(), space_.data() + offset, to.size());
    counters_.read_bytes += static_cast<std::int64_t>(to.size());
    return next_++;
  }
  Ticket start_write(std::int64_t offset, std::span<const std::byte> from,
                     std::string_view what) override {
    check(offset, from.data(), from.size(), what);
    std::lock_guard lock(mutex_);
    std::memcpy(space_.data() + offset, from.data(), from.size());
    counters_.written_bytes += static_cast<std::int64_t>(from.size());
    return next_++;
  }
  void wait(Ticket ticket) override { STRATA_CHECK(ticket < next_, ticket); }
  void read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view) override {
    std::lock_guard lock(mutex_);
    std::memcpy(to.data(), space_.data() + offset, to.size());
  }
  void write_bytes(std::int64_t offset, std::span<const std::byte> from, std::string_view) override {
    std::lock_guard lock(mutex_);
    std::memcpy(space_.data() + offset, from.data(), from.size());
  }
  [[nodiscard]] runtime::DiskCounters counters() const override {
    std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
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
  std::atomic<Ticket> next_ = 0;
  runtime::DiskCounters counters_;
};

}  // namespace strata::tests
