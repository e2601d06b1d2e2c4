// Copies a block of a matrix into panels [panel][k][element]. A panel has as many elements as a
// register tile takes at once; the last one is filled up with zeros. Included once per instruction
// set (Highway).

#if defined(STRATA_KERNELS_CPU_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_PACK_INL_H_
#undef STRATA_KERNELS_CPU_PACK_INL_H_
#else
#define STRATA_KERNELS_CPU_PACK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {

/// Rows that are read side by side. More of them would push each other out of the first-level cache
/// if they lie a multiple of 4 KiB apart.
constexpr std::int64_t kPackedAtOnce = 4;

/// A stored operand: [k, elements] if rows_are_depth, else [elements, k].
struct StoredOperand {
  const std::byte* data;
  DType dtype;
  std::int64_t stride;  ///< elements
  bool rows_are_depth;
};

/// Elements [column, column + count) of up to four rows from `row` on as fp32, widened if need be.
struct FourRows {
  const float* at[kPackedAtOnce];

  FourRows(const StoredOperand& from, std::int64_t row, std::int64_t rows, std::int64_t column,
           std::int64_t count, float* widened, std::int64_t widened_stride) {
    for (std::int64_t t = 0; t < kPackedAtOnce; ++t) {
      if (t >= rows) {
        at[t] = at[rows - 1];  // not used
        continue;
      }
      const std::byte* data = from.data + ((row + t) * from.stride + column) * size_of(from.dtype);
      at[t] = reinterpret_cast<const float*>(data);
      if (from.dtype == DType::f32) continue;
      at[t] = widened + t * widened_stride;
      convert_range(from.dtype, data, DType::f32,
                    reinterpret_cast<std::byte*>(widened + t * widened_stride), count);
    }
  }
};

/// Packs an operand [k, elements]: copies pieces of its rows.
template <std::int64_t kPanel>
void pack_rows(const StoredOperand& from, std::int64_t k, std::int64_t depth, std::int64_t first,
               std::int64_t count, float* to, float* widened) {
  const std::int64_t whole = count / kPanel * kPanel;
  for (std::int64_t kk = 0; kk < depth; kk += kPackedAtOnce) {
    const std::int64_t rows = std::min(kPackedAtOnce, depth - kk);
    const FourRows four(from, k + kk, rows, first, count, widened, count);
    float* out = to + kk * kPanel;
    for (std::int64_t i = 0; i < whole; i += kPanel, out += depth * kPanel)
      for (std::int64_t t = 0; t < rows; ++t)
        std::memcpy(out + t * kPanel, four.at[t] + i, kPanel * sizeof(float));
    if (whole == count) continue;
    for (std::int64_t t = 0; t < rows; ++t) {
      std::fill_n(out + t * kPanel, kPanel, 0.0F);
      std::copy(four.at[t] + whole, four.at[t] + count, out + t * kPanel);
    }
  }
}

/// Copies two rows of `depth` elements into two columns of `to`, whose rows have `stride`.
HWY_INLINE void pack_two_columns(const FourRows& rows, std::int64_t depth, float* to,
                                 std::int64_t stride) {
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<float, 4> f;
  const hn::Half<decltype(f)> half;
  for (; k + 4 <= depth; k += 4) {
    const auto r0 = hn::LoadU(f, rows.at[0] + k), r1 = hn::LoadU(f, rows.at[1] + k);
    const auto low = hn::InterleaveLower(f, r0, r1), high = hn::InterleaveUpper(f, r0, r1);
    float* out = to + k * stride;
    hn::StoreU(hn::LowerHalf(half, low), half, out);
    hn::StoreU(hn::UpperHalf(half, low), half, out + stride);
    hn::StoreU(hn::LowerHalf(half, high), half, out + 2 * stride);
    hn::StoreU(hn::UpperHalf(half, high), half, out + 3 * stride);
  }
#endif
  for (; k < depth; ++k)
    for (std::int64_t t = 0; t < 2; ++t) to[k * stride + t] = rows.at[t][k];
}

/// Copies four rows of `depth` elements into four columns of `to`, whose rows have `stride`.
HWY_INLINE void pack_four_columns(const FourRows& four, std::int64_t depth, float* to,
                                  std::int64_t stride) {
  const std::int64_t whole = depth / 4 * 4;
  transpose(four.at[0], kPackedAtOnce, whole, four.at[1] - four.at[0], to, stride);
  for (std::int64_t k = whole; k < depth; ++k)
    for (std::int64_t t = 0; t < kPackedAtOnce; ++t) to[k * stride + t] = four.at[t][k];
}

/// Packs an operand [elements, k]: its rows become columns of a panel.
template <std::int64_t kPanel>
void pack_columns(const StoredOperand& from, std::int64_t k, std::int64_t depth, std::int64_t first,
                  std::int64_t count, float* to, float* widened) {
  for (std::int64_t i = 0; i < count; i += kPanel, to += depth * kPanel) {
    const std::int64_t inside = std::min(kPanel, count - i);
    for (std::int64_t e = 0; e < kPanel; e += kPackedAtOnce) {
      const std::int64_t width = std::min(kPackedAtOnce, kPanel - e);
      const std::int64_t rows = std::clamp<std::int64_t>(inside - e, 0, width);
      if (rows == 0) {
        for (std::int64_t kk = 0; kk < depth; ++kk) std::fill_n(to + kk * kPanel + e, width, 0.0F);
        continue;
      }
      const FourRows four(from, first + i + e, rows, k, depth, widened, depth);
      if (rows == width && width == 4) {
        pack_four_columns(four, depth, to + e, kPanel);
        continue;
      }
      if (rows == width && width == 2) {
        pack_two_columns(four, depth, to + e, kPanel);
        continue;
      }
      for (std::int64_t kk = 0; kk < depth; ++kk)
        for (std::int64_t t = 0; t < width; ++t)
          to[kk * kPanel + e + t] = t < rows ? four.at[t][kk] : 0.0F;
    }
  }
}

/// Packs elements [first, first + count) of depth [k, k + depth) into `to`. `widened` has room for
/// four of the rows that are read, if the operand is not fp32.
template <std::int64_t kPanel>
void pack(const StoredOperand& from, std::int64_t k, std::int64_t depth, std::int64_t first,
          std::int64_t count, float* to, float* widened) {
  if (from.rows_are_depth)
    pack_rows<kPanel>(from, k, depth, first, count, to, widened);
  else
    pack_columns<kPanel>(from, k, depth, first, count, to, widened);
}

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
