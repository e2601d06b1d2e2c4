#include "comm/testing/scalar_model.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace strata::comm {
namespace {

float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Returns the nearer bf16 neighbour of `value`; if both are equally near, the even one.
float nearest_bf16(float value) {
  if (!std::isfinite(value)) return value;
  const auto toward_zero = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  const auto away = static_cast<std::uint16_t>(toward_zero + 1);
  const double below = std::fabs(double{value} - double{bf16_value(toward_zero)});
  // The neighbour above the largest finite value counts as 2^128 here, though it is infinity.
  const double next =
      std::isinf(bf16_value(away)) ? std::copysign(0x1p128, value) : double{bf16_value(away)};
  const double above = std::fabs(next - double{value});
  if (below != above) return bf16_value(below < above ? toward_zero : away);
  return bf16_value(toward_zero % 2 == 0 ? toward_zero : away);
}

float tree(const std::vector<float>& leaves, std::size_t first, std::size_t width) {
  if (width == 1) return leaves[first];
  const std::size_t middle = first + width / 2;
  const float left = tree(leaves, first, width / 2);
  return middle < leaves.size() ? left + tree(leaves, middle, width / 2) : left;
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

float rounded(float value, DType type) {
  if (type == DType::bf16) return nearest_bf16(value);
  if (type == DType::f16) return static_cast<float>(static_cast<_Float16>(value));
  return value;
}

float pattern(DType type, int rank, std::int64_t index, std::uint64_t seed) {
  const std::uint64_t bits =
      mix(mix(seed, static_cast<std::uint64_t>(rank)), static_cast<std::uint64_t>(index));
  if (bits % 17 == 0) return bits % 34 == 0 ? 0.0f : -0.0f;
  const int exponent = static_cast<int>(bits % 44) - 28;  // fp16: subnormal to just too large
  auto mantissa = static_cast<std::int32_t>(bits >> 40);
  if (bits % 5 == 0)
    mantissa = (mantissa & 0xfff000) | 0x1000;  // halfway between fp16 or bf16 values
  if (bits % 7 == 0) mantissa &= 0xff8000;
  const float value = std::ldexp(static_cast<float>(mantissa), exponent - 23);
  return rounded((bits >> 39) % 2 == 0 ? value : -value, type);
}

void store(std::byte* memory, DType type, std::int64_t index, float value) {
  if (type == DType::f32) {
    std::memcpy(memory + index * 4, &value, 4);
  } else if (type == DType::bf16) {
    const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    std::memcpy(memory + index * 2, &bits, 2);
  } else {
    const auto half = static_cast<_Float16>(value);
    std::memcpy(memory + index * 2, &half, 2);
  }
}

float load(const std::byte* memory, DType type, std::int64_t index) {
  if (type == DType::f32) {
    float value;
    std::memcpy(&value, memory + index * 4, 4);
    return value;
  }
  if (type == DType::bf16) {
    std::uint16_t bits;
    std::memcpy(&bits, memory + index * 2, 2);
    return bf16_value(bits);
  }
  _Float16 half;
  std::memcpy(&half, memory + index * 2, 2);
  return static_cast<float>(half);
}

float tree_sum(const std::vector<float>& contributions, DType wire, float scale) {
  std::vector<float> leaves;
  for (const float contribution : contributions) leaves.push_back(rounded(contribution, wire));
  return tree(leaves, 0, std::bit_ceil(leaves.size())) * scale;
}

}  // namespace strata::comm
