// Which bytes of a store were written, and the hashes of what was.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace strata::offload {

/// Bytes that were written at once and are hashed as one. None crosses a multiple of kBlockBytes.
struct Extent {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;
  [[nodiscard]] std::int64_t end() const { return offset + bytes; }
  bool operator==(const Extent&) const = default;
};

inline constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;

/// Offsets are multiples of runtime::kDiskAlignment. A write leaves one extent per block of
/// kBlockBytes that it touches; whoever reads or writes a part of an extent splits it before, which
/// needs its bytes for the hashes of both parts. Transfers that keep their borders, as a step's do,
/// never split. Any thread may call; 40 bytes of memory per block.
class ExtentTable {
 public:
  explicit ExtentTable(std::int64_t bytes);

  /// The extent that begins before `border` and ends after it.
  [[nodiscard]] std::optional<Extent> across(std::int64_t border) const;
  /// Cuts that extent; `left` and `right` are the hashes of its parts.
  void split(std::int64_t border, std::uint64_t left, std::uint64_t right);

  /// [offset, offset + bytes) is about to be written: appends its extents to `out`. `hashed` says
  /// that set_hash will follow for each. No extent crosses its ends.
  void write(std::int64_t offset, std::int64_t bytes, bool hashed, std::vector<Extent>& out);
  void set_hash(const Extent& extent);
  /// Drops, as a whole, every extent that has a byte in [offset, offset + bytes).
  void discard(std::int64_t offset, std::int64_t bytes);
  /// Appends the extents within [offset, offset + bytes) to `out`, by offset. None may cross its
  /// ends. Throws InternalError, naming `what`, when one is being written.
  void written(std::int64_t offset, std::int64_t bytes, std::string_view what,
               std::vector<Extent>& out) const;
  void clear();

 private:
  struct Part {  // of a block
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint64_t hash = 0;
    bool pending = false;  // its hash is still to come
  };
  using Block = std::vector<Part>;  // by begin

  mutable std::mutex mutex_;
  std::vector<Block> blocks_;
};

}  // namespace strata::offload
