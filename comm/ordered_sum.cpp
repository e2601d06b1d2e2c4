#include "comm/ordered_sum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace strata::kernels {
namespace {
constexpr std::int64_t kBlock = 1024;

float load(const std::byte* p, DType t, std::int64_t i) {
  if (t == DType::f32) {
    float v;
    std::memcpy(&v, p + 4 * i, 4);
    return v;
  }
  if (t == DType::bf16) {
    std::uint16_t v;
    std::memcpy(&v, p + 2 * i, 2);
    return std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16);
  }
  _Float16 v;
  std::memcpy(&v, p + 2 * i, 2);
  return static_cast<float>(v);
}

std::uint16_t to_bf16(float v) {
  const auto b = std::bit_cast<std::uint32_t>(v);
  if ((b & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>((b >> 16) | 0x40);
  return static_cast<std::uint16_t>((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}

float round_to(float v, DType w) {
  if (w == DType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(to_bf16(v)) << 16);
  if (w == DType::f16) return static_cast<float>(static_cast<_Float16>(v));
  return v;
}

struct Sum {
  std::span<const std::byte* const> in;
  DType type, wire;
  void run(std::int64_t first, std::int64_t n, std::size_t low, std::size_t width,
           float* out) const {
    if (width == 1) {
      if (type == DType::f32 && wire == DType::f32) {
        std::memcpy(out, in[low] + first * 4, static_cast<std::size_t>(n) * 4);
        return;
      }
      for (std::int64_t i = 0; i < n; ++i) out[i] = round_to(load(in[low], type, first + i), wire);
      return;
    }
    run(first, n, low, width / 2, out);
    if (low + width / 2 >= in.size()) return;
    alignas(64) float right[kBlock];
    run(first, n, low + width / 2, width / 2, right);
    for (std::int64_t i = 0; i < n; ++i) out[i] += right[i];
  }
};
}  // namespace

void ordered_sum(std::span<const std::byte* const> contributions, DType input_type, DType wire_type,
                 std::int64_t count, float scale, float* out, ThreadPool*) {
  const Sum sum{contributions, input_type, wire_type};
  alignas(64) float block[kBlock];
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, count - first);
    sum.run(first, n, 0, std::bit_ceil(contributions.size()), block);
    for (std::int64_t i = 0; i < n; ++i) out[first + i] = block[i] * scale;
  }
}

void convert_to_wire(const std::byte* input, DType input_type, DType wire_type, std::int64_t count,
                     std::byte* out, ThreadPool*) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = round_to(load(input, input_type, i), wire_type);
    if (wire_type == DType::f32) {
      std::memcpy(out + 4 * i, &v, 4);
    } else if (wire_type == DType::bf16) {
      const std::uint16_t h = to_bf16(v);
      std::memcpy(out + 2 * i, &h, 2);
    } else {
      const auto h = static_cast<_Float16>(v);
      std::memcpy(out + 2 * i, &h, 2);
    }
  }
}
}  // namespace strata::kernels
