// The slow part of NvmeStore: ranges that are not aligned.
#include <algorithm>
#include <cstring>

#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/nvme_store.h"
#include "runtime/program/arena_alignment.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kWindowBytes = std::int64_t{4} << 20;

/// The aligned stretch around the beginning of [position, end) to transfer at once.
struct Stretch {
  Stretch(std::int64_t position, std::int64_t range_end)
      : begin(round_down(position)),
        end(std::min(round_up(range_end), (position / kWindowBytes + 1) * kWindowBytes)),
        stop(std::min(range_end, end)) {}
  std::int64_t begin;
  std::int64_t end;
  std::int64_t stop;  // end of the range's bytes in the stretch

  [[nodiscard]] std::span<std::byte> in(const TransferMemory& window) const {
    return window.bytes().first(static_cast<std::size_t>(end - begin));
  }
};

std::int64_t window_bytes(std::size_t bytes) {
  return std::min(kWindowBytes, static_cast<std::int64_t>(bytes) + 2 * runtime::kDiskAlignment);
}

}  // namespace

void NvmeStore::read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) {
  const std::shared_lock lock(bytes_mutex_);
  const TransferMemory window(*this, window_bytes(to.size()), what);
  const std::int64_t end = offset + static_cast<std::int64_t>(to.size());
  for (std::int64_t at = offset; at < end;) {
    const Stretch stretch(at, end);
    const std::span<std::byte> bytes = stretch.in(window);
    wait(start_read(stretch.begin, bytes, window.what()));
    std::memcpy(to.data() + (at - offset), bytes.data() + (at - stretch.begin),
                static_cast<std::size_t>(stretch.stop - at));
    at = stretch.stop;
  }
}

void NvmeStore::write_bytes(std::int64_t offset, std::span<const std::byte> from,
                            std::string_view what) {
  const std::lock_guard lock(bytes_mutex_);
  const TransferMemory window(*this, window_bytes(from.size()), what);
  const std::int64_t end = offset + static_cast<std::int64_t>(from.size());
  for (std::int64_t at = offset; at < end;) {
    const Stretch stretch(at, end);
    const std::span<std::byte> bytes = stretch.in(window);
    // Reads the first and last sector, if they keep some of their bytes.
    constexpr auto kSector = static_cast<std::size_t>(runtime::kDiskAlignment);
    if (at != stretch.begin) wait(start_read(stretch.begin, bytes.first(kSector), window.what()));
    if (stretch.stop != stretch.end && (at == stretch.begin || bytes.size() > kSector))
      wait(start_read(stretch.end - runtime::kDiskAlignment, bytes.last(kSector), window.what()));
    std::memcpy(bytes.data() + (at - stretch.begin), from.data() + (at - offset),
                static_cast<std::size_t>(stretch.stop - at));
    wait(start_write(stretch.begin, bytes, window.what()));
    at = stretch.stop;
  }
}

}  // namespace strata::offload
