#include "kernels/cpu/block_product.h"

#include <algorithm>
#include <cstdint>

#include "core/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/block_product.cpp"
#include "core/round_up.h"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd_targets.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "kernels/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// Most rows of A that are packed at a time: with kProductDepth 240 KiB of the second-level cache.
constexpr std::int64_t kBlockRows = 240;
/// Least rows and columns that are multiples of the register tile of every instruction set.
constexpr std::int64_t kMostRows = 12, kMostColumns = 32;

// A register tile: two vectors wide, and as many rows as leave registers for the operands (of 32
// with AVX-512, else 16).
constexpr std::int64_t kWidth = static_cast<std::int64_t>(kLanes);
constexpr std::int64_t kColumns = 2 * kWidth;
constexpr std::int64_t kRows = kLanes >= 16 ? 12 : kLanes >= 4 ? 6 : 2;
static_assert(kMostRows % kRows == 0 && kMostColumns % kColumns == 0);

/// Sets C[kRows, kColumns] to the product of a panel of A, [depth][kRows], and one of B,
/// [depth][kColumns], or adds it if `add`.
HWY_NOINLINE void whole_tile(std::int64_t depth, const float* HWY_RESTRICT a,
                             const float* HWY_RESTRICT b, float* c, std::int64_t stride, bool add) {
  const F f;
  for (std::int64_t i = 0; i < kRows; ++i) __builtin_prefetch(c + i * stride, 1);
  V left[kRows], right[kRows];
#pragma GCC unroll 12
  for (std::int64_t i = 0; i < kRows; ++i) left[i] = right[i] = hn::Zero(f);
  for (std::int64_t k = 0; k < depth; ++k) {
    const V b_left = hn::Load(f, b), b_right = hn::Load(f, b + kWidth);
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < kRows; ++i) {
      const V factor = all(a[i]);
      left[i] = hn::MulAdd(factor, b_left, left[i]);
      right[i] = hn::MulAdd(factor, b_right, right[i]);
    }
    a += kRows;
    b += kColumns;
  }
#pragma GCC unroll 12
  for (std::int64_t i = 0; i < kRows; ++i) {
    float* row = c + i * stride;
    if (add) {
      left[i] = hn::Add(hn::LoadU(f, row), left[i]);
      right[i] = hn::Add(hn::LoadU(f, row + kWidth), right[i]);
    }
    hn::StoreU(left[i], f, row);
    hn::StoreU(right[i], f, row + kWidth);
  }
}

/// Does the same for the first `rows` and `columns` of a tile.
HWY_NOINLINE void part_of_tile(std::int64_t depth, const float* a, const float* b, float* c,
                               std::int64_t stride, bool add, std::int64_t rows,
                               std::int64_t columns) {
  HWY_ALIGN float whole[kRows * kColumns];
  whole_tile(depth, a, b, whole, kColumns, false);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      float& to = c[i * stride + j];
      to = add ? to + whole[i * kColumns + j] : whole[i * kColumns + j];
    }
}

/// Multiplies a packed block of `rows` of A by one of `columns` of B; adds to C if `add`.
void multiply_packed(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a,
                     const float* b, float* c, std::int64_t stride, bool add) {
  for (std::int64_t j = 0; j < columns; j += kColumns, b += kColumns * depth) {
    const float* panel = a;
    for (std::int64_t i = 0; i < rows; i += kRows, panel += kRows * depth) {
      float* tile = c + i * stride + j;
      if (i + kRows <= rows && j + kColumns <= columns)
        whole_tile(depth, panel, b, tile, stride, add);
      else
        part_of_tile(depth, panel, b, tile, stride, add, std::min(kRows, rows - i),
                     std::min(kColumns, columns - j));
    }
  }
}

/// Returns the rows per block if `rows` are cut into as few, about equal blocks as possible.
std::int64_t block_rows(std::int64_t rows) {
  const std::int64_t blocks = divide_up(rows, kBlockRows);
  return (rows + blocks * kMostRows - 1) / (blocks * kMostRows) * kMostRows;
}

void multiply_tile_blocks(const TileShape& s, const std::byte* a, const std::byte* b, float* c,
                          float* packed_a, float* packed_b, float* widened) {
  for (std::int64_t k = 0; k < s.k; k += kProductDepth) {
    const std::int64_t depth = std::min(kProductDepth, s.k - k);
    const StoredOperand from_b{b, s.b_dtype, s.b_stride, !s.b_transposed};
    pack<kColumns>(from_b, k, depth, 0, s.n, packed_b, widened);
    const StoredOperand from_a{a, s.a_dtype, s.a_stride, s.a_transposed};
    const std::int64_t most = block_rows(s.m);
    for (std::int64_t i = 0; i < s.m; i += most) {
      const std::int64_t rows = std::min(most, s.m - i);
      pack<kRows>(from_a, k, depth, i, rows, packed_a, widened);
      multiply_packed(rows, s.n, depth, packed_a, packed_b, c + i * s.c_stride, s.c_stride,
                      s.accumulate || k > 0);
    }
  }
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {

using HWY_NAMESPACE::kBlockRows, HWY_NAMESPACE::kMostColumns, HWY_NAMESPACE::kMostRows,
    HWY_NAMESPACE::kPackedAtOnce;

/// Number of floats of each region of scratch, multiples of 16.
struct PackedSizes {
  std::int64_t a, b, widened;

  explicit PackedSizes(const TileShape& s) {
    const std::int64_t depth = std::min(s.k, kProductDepth);
    a = round_up(round_up(std::min(s.m, kBlockRows), kMostRows) * depth, 16);
    b = round_up(round_up(s.n, kMostColumns) * depth, 16);
    const std::int64_t longest = std::max({depth, std::min(s.m, kBlockRows), s.n});
    const bool widens = s.a_dtype != DType::f32 || s.b_dtype != DType::f32;
    widened = widens ? round_up(kPackedAtOnce * longest, 16) : 0;
  }
  [[nodiscard]] std::int64_t total() const { return a + b + widened; }
};

}  // namespace

HWY_EXPORT(multiply_tile_blocks);

std::int64_t packed_bytes(const TileShape& shape) {
  return PackedSizes(shape).total() * size_of(DType::f32);
}

void multiply_blocks(const TileShape& shape, const std::byte* a, const std::byte* b, float* c,
                     std::span<std::byte> scratch) {
  STRATA_CHECK(static_cast<std::int64_t>(scratch.size()) >= packed_bytes(shape), scratch.size());
  STRATA_CHECK(reinterpret_cast<std::uintptr_t>(scratch.data()) % 64 == 0);
  const PackedSizes sizes(shape);
  auto* floats = reinterpret_cast<float*>(scratch.data());
  HWY_DYNAMIC_DISPATCH(multiply_tile_blocks)
  (shape, a, b, c, floats, floats + sizes.a, floats + sizes.a + sizes.b);
}

}  // namespace strata::kernels
#endif
