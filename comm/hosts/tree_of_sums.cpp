#include "comm/hosts/tree_of_sums.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/check.h"
#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {
namespace {

/// Elements added at a time: partial sums of a block stay in the first-level cache.
constexpr std::int64_t kBlock = 512;
/// Sums that can wait at a time: one per level of the tree, of up to 65,536 leaves, and the one
/// being computed.
constexpr int kLevels = 17;

/// Adds one block of elements. Visits subtrees in order, from the root down.
class BlockSum {
 public:
  BlockSum(std::span<const SumPart> sums, int world, std::int64_t begin, std::int64_t count)
      : sums_(sums), world_(world), begin_(begin), count_(count) {}

  /// Returns the sum of leaves [first, first + width); it lies in the scratch of `level` or in
  /// place.
  const float* sum_of(int first, int width, int level) {
    STRATA_CHECK(next_ < sums_.size() && level < kLevels, "no part of leaf", first);
    const SumPart& part = sums_[next_];
    STRATA_CHECK(part.subtree.first == first, "part of leaf", part.subtree.first, "at leaf", first);
    if (part.subtree.leaves == std::min(width, world_ - first)) {
      ++next_;
      return value_of(part, level);
    }
    const int middle = first + width / 2;
    const float* left = sum_of(first, width / 2, level);
    if (middle >= world_) return left;
    const float* right = sum_of(middle, width / 2, level + 1);
    const std::array<const std::byte*, 2> both{reinterpret_cast<const std::byte*>(left),
                                               reinterpret_cast<const std::byte*>(right)};
    float* sum = scratch_[level].data();
    kernels::ordered_sum(nullptr, both, DType::f32, DType::f32, count_, 1.0f, sum);
    return sum;
  }

 private:
  const float* value_of(const SumPart& part, int level) {
    std::array<const std::byte*, kernels::kMaxContributions> at;
    STRATA_CHECK(part.parts.size() <= at.size(), part.parts.size());
    const std::int64_t offset = begin_ * size_of(part.input_type);
    std::ranges::transform(part.parts, at.begin(), [&](const auto* base) { return base + offset; });
    if (part.parts.size() == 1 && part.input_type == DType::f32 && part.wire_type == DType::f32)
      return reinterpret_cast<const float*>(at[0]);
    float* value = scratch_[level].data();
    kernels::ordered_sum(nullptr, {at.data(), part.parts.size()}, part.input_type, part.wire_type,
                         count_, 1.0f, value);
    return value;
  }

  std::span<const SumPart> sums_;
  int world_;
  std::int64_t begin_;
  std::int64_t count_;
  std::size_t next_ = 0;
  alignas(64) std::array<std::array<float, kBlock>, kLevels> scratch_;
};

/// Adds up all parts in one pass, if they are contributions of one type; returns whether it did.
bool sum_contributions(std::span<const SumPart> sums, std::int64_t begin, std::int64_t count,
                       float scale, float* out) {
  std::array<const std::byte*, kernels::kMaxContributions> at;
  std::size_t leaves = 0;
  const DType input_type = sums.front().input_type, wire_type = sums.front().wire_type;
  for (const SumPart& sum : sums) {
    if (std::ssize(sum.parts) != sum.subtree.leaves || leaves + sum.parts.size() > at.size() ||
        sum.input_type != input_type || sum.wire_type != wire_type)
      return false;
    for (const std::byte* part : sum.parts) at[leaves++] = part + begin * size_of(input_type);
  }
  kernels::ordered_sum(nullptr, {at.data(), leaves}, input_type, wire_type, count, scale, out);
  return true;
}

}  // namespace

void sum_tree(std::span<const SumPart> sums, int world, std::int64_t begin, std::int64_t count,
              float scale, float* out) {
  if (sum_contributions(sums, begin, count, scale, out)) return;
  const int root = static_cast<int>(std::bit_ceil(static_cast<unsigned>(world)));
  for (std::int64_t done = 0; done < count; done += kBlock) {
    const std::int64_t block = std::min(kBlock, count - done);
    BlockSum sum(sums, world, begin + done, block);
    const auto* value = reinterpret_cast<const std::byte*>(sum.sum_of(0, root, 0));
    kernels::ordered_sum(nullptr, {&value, 1}, DType::f32, DType::f32, block, scale, out + done);
  }
}

}  // namespace strata::comm
