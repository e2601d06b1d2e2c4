// A table of the bytes of a store that were written, with their hashes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace strata::offload {

/// Bytes written at once, with one hash. An extent does not cross multiples of kBlockBytes.
struct Extent {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;
  [[nodiscard]] std::int64_t end() const { return offset + bytes; }
  bool operator==(const Extent&) const = default;
};

inline constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;

/// Offsets are multiples of runtime::kDiskAlignment. A write leaves one extent per block of
/// kBlockBytes that it touches. Split an extent before its parts are read or written: this needs
/// its bytes, to hash both parts. Transfers that keep their borders, as a step's do, never split.
/// Any thread may call; takes 24 bytes of memory per block and 24 per extent: 48 for a block that
/// is written at once, besides what the allocator adds.
class ExtentTable {
 public:
  explicit ExtentTable(std::int64_t bytes);

  /// Returns the extent that begins before `border` and ends after it.
  [[nodiscard]] std::optional<Extent> across(std::int64_t border) const;
  /// Splits that extent; `left` and `right` are the hashes of its parts.
  void split(std::int64_t border, std::uint64_t left, std::uint64_t right);

  /// Call before [offset, offset + bytes) is written; appends the extents of the write to `out`.
  /// With `hashed`, call set_hash later for each. No extent may cross the ends of the range.
  void write(std::int64_t offset, std::int64_t bytes, bool hashed, std::vector<Extent>& out);
  void set_hash(const Extent& extent);
  /// Drops every extent that has a byte in [offset, offset + bytes), as a whole.
  void discard(std::int64_t offset, std::int64_t bytes);
  /// Appends the extents within [offset, offset + bytes) to `out`, by offset. No extent may cross
  /// the ends of the range. Throws InternalError that names `what` when one is being written.
  void written(std::int64_t offset, std::int64_t bytes, std::string_view what,
               std::vector<Extent>& out) const;
  void clear();

 private:
  struct Part {  // part of a block
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint64_t hash = 0;
    bool pending = false;  // set_hash is still to come
  };
  using Block = std::vector<Part>;  // sorted by begin

  mutable std::mutex mutex_;
  std::vector<Block> blocks_;
};

}  // namespace strata::offload
