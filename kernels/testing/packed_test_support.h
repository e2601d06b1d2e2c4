// Helpers for tests of packed masters (kernels/ops/optimizer_operands.h).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/math/float16.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {

/// Returns random numbers, some half-way between two bf16 numbers, and the ends of the range.
inline std::vector<float> masters_of_every_kind(std::int64_t count) {
  std::vector<float> values = random_floats(count, 1);
  for (std::size_t i = 0; i < values.size(); i += 3)
    values[i] =
        std::bit_cast<float>((std::bit_cast<std::uint32_t>(values[i]) & 0xFFFF0000) | 0x8000);
  const std::uint32_t special[] = {0,          0x80000000, 1,          0x80000001,
                                   0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
                                   0x3F7FFFFF, 0x3F808000, 0x007F8000};
  for (std::size_t i = 0; i < std::size(special); ++i)
    values[7 * i + 1] = std::bit_cast<float>(special[i]);
  return values;
}

/// Returns parameters and remainders of masters.
inline std::vector<TestTensor> packed_tensors(const std::vector<float>& masters) {
  std::vector<std::uint16_t> parameter;
  std::vector<std::int16_t> remainder;
  for (const float master : masters) {
    parameter.push_back(master_to_bf16(master));
    remainder.push_back(master_remainder(master));
  }
  const Shape shape{static_cast<std::int64_t>(masters.size())};
  return {TestTensor(DType::bf16, shape, parameter), TestTensor(DType::i16, shape, remainder)};
}

/// Gives all NaN the same bits: which ones an operation makes differs by processor.
inline std::vector<std::uint32_t> with_one_nan(std::vector<std::uint32_t> bits) {
  for (std::uint32_t& number : bits)
    if (std::isnan(std::bit_cast<float>(number))) number = 0x7FC00000;
  return bits;
}

/// Gives all NaN of bf16 the same bits.
inline std::vector<std::uint16_t> with_one_nan(std::vector<std::uint16_t> bits) {
  for (std::uint16_t& number : bits)
    if (std::isnan(bf16_to_f32(number))) number = 0x7FC0;
  return bits;
}

/// Returns the bits of the masters that operands 0 and 1 hold, with one NaN.
inline std::vector<std::uint32_t> unpacked(const std::vector<TestTensor>& operands) {
  const auto parameter = operands[0].values<std::uint16_t>();
  const auto remainder = operands[1].values<std::int16_t>();
  std::vector<std::uint32_t> bits;
  for (std::size_t i = 0; i < parameter.size(); ++i)
    bits.push_back(std::bit_cast<std::uint32_t>(master_from_parts(parameter[i], remainder[i])));
  return with_one_nan(std::move(bits));
}

}  // namespace strata::kernels
