#include "offload/nvme/extent_table.h"

#include <fmt/core.h>
#include <algorithm>
#include <string>

#include "core/check.h"
#include "core/error.h"
#include "core/round_up.h"

namespace strata::offload {
namespace {

/// Calls visit(block index, begin, end) for each block of a range; begin and end lie within it.
template <typename Visit>
void for_each_block(std::int64_t offset, std::int64_t bytes, const Visit& visit) {
  for (const std::int64_t end = offset + bytes; offset < end;) {
    const std::int64_t block = offset / kBlockBytes;
    const std::int64_t block_begin = block * kBlockBytes;
    const std::int64_t stop = std::min(end, block_begin + kBlockBytes);
    visit(static_cast<std::size_t>(block), static_cast<std::uint32_t>(offset - block_begin),
          static_cast<std::uint32_t>(stop - block_begin));
    offset = stop;
  }
}

}  // namespace

ExtentTable::ExtentTable(std::int64_t bytes)
    : blocks_(static_cast<std::size_t>(divide_up(bytes, kBlockBytes))) {}

std::optional<Extent> ExtentTable::across(std::int64_t border) const {
  const std::int64_t inside = border % kBlockBytes;
  if (inside == 0) return std::nullopt;
  const std::int64_t begin = border - inside;
  const std::lock_guard lock(mutex_);
  for (const Part& part : blocks_[static_cast<std::size_t>(border / kBlockBytes)])
    if (part.begin < inside && inside < part.end) {
      if (part.pending)
        throw InternalError(fmt::format(
            "bytes of the disk at {} are used in part while they are being written", border));
      return Extent{begin + part.begin, part.end - part.begin, part.hash};
    }
  return std::nullopt;
}

void ExtentTable::split(std::int64_t border, std::uint64_t left, std::uint64_t right) {
  const auto inside = static_cast<std::uint32_t>(border % kBlockBytes);
  const std::lock_guard lock(mutex_);
  Block& block = blocks_[static_cast<std::size_t>(border / kBlockBytes)];
  const auto part = std::find_if(block.begin(), block.end(), [inside](const Part& candidate) {
    return candidate.begin < inside && inside < candidate.end;
  });
  STRATA_CHECK(part != block.end(), "no extent to split at", border);
  const Part second{inside, part->end, right};
  part->end = inside;
  part->hash = left;
  block.insert(part + 1, second);
}

void ExtentTable::write(std::int64_t offset, std::int64_t bytes, bool hashed,
                        std::vector<Extent>& out) {
  const std::lock_guard lock(mutex_);
  for_each_block(offset, bytes, [&](std::size_t index, std::uint32_t begin, std::uint32_t end) {
    Block& block = blocks_[index];
    const auto first = std::find_if(block.begin(), block.end(),
                                    [begin](const Part& part) { return part.end > begin; });
    const auto last =
        std::find_if(first, block.end(), [end](const Part& part) { return part.begin >= end; });
    for (auto part = first; part != last; ++part) {
      STRATA_CHECK(begin <= part->begin && part->end <= end,
                   "an extent crosses the ends of a write");
      if (part->pending)
        throw InternalError(
            fmt::format("bytes of the disk at {} are written twice at a time", offset));
    }
    const Part part{begin, end, 0, hashed};
    if (last - first == 1)
      *first = part;  // usual: same borders as before
    else
      block.insert(block.erase(first, last), part);
    out.push_back({static_cast<std::int64_t>(index) * kBlockBytes + begin, end - begin, 0});
  });
}

void ExtentTable::set_hash(const Extent& extent) {
  const auto begin = static_cast<std::uint32_t>(extent.offset % kBlockBytes);
  const std::lock_guard lock(mutex_);
  for (Part& part : blocks_[static_cast<std::size_t>(extent.offset / kBlockBytes)])
    if (part.begin == begin) {
      part.hash = extent.hash;
      part.pending = false;
    }
}

void ExtentTable::discard(std::int64_t offset, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  for_each_block(offset, bytes, [&](std::size_t index, std::uint32_t begin, std::uint32_t end) {
    std::erase_if(blocks_[index], [&](const Part& part) {
      if (part.end <= begin || end <= part.begin) return false;
      STRATA_CHECK(!part.pending, "bytes go while they are being written, at", offset);
      return true;
    });
  });
}

void ExtentTable::written(std::int64_t offset, std::int64_t bytes, std::string_view what,
                          std::vector<Extent>& out) const {
  const std::lock_guard lock(mutex_);
  for_each_block(offset, bytes, [&](std::size_t index, std::uint32_t begin, std::uint32_t end) {
    for (const Part& part : blocks_[index]) {
      if (part.end <= begin || end <= part.begin) continue;
      STRATA_CHECK(begin <= part.begin && part.end <= end, "an extent crosses the ends of a read");
      if (part.pending)
        throw InternalError(fmt::format(
            "{}: bytes of the disk at {} are read while they are being written", what, offset));
      out.push_back({static_cast<std::int64_t>(index) * kBlockBytes + part.begin,
                     part.end - part.begin, part.hash});
    }
  });
}

void ExtentTable::clear() {
  const std::lock_guard lock(mutex_);
  for (Block& block : blocks_) block.clear();
}

}  // namespace strata::offload
