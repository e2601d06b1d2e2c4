#include "kernels/ops/initialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/initial_values.h"
#include "kernels/math/float16.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::kernels {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::i16};
constexpr std::byte kBefore{0xFF};

/// Seed and tensor key exceed 32 bits, as hashes of names do.
constexpr TensorInitializer kNormal{
    .seed = 1234567890123, .tensor = 0x00abcdef12345678, .deviation = 0.02};

/// Returns elements [first, first + count) as the host makes them.
std::vector<std::byte> expected(const TensorInitializer& tensor, DType dtype, std::int64_t first,
                                std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  initial_values(InitialValues::from(tensor.attributes(dtype, first, count)), first, values);
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  store_initial_values(values, dtype, bytes.data());
  return bytes;
}

/// Returns the elements that `runner` makes, `offset` elements after an aligned address, and
/// expects that nothing beside them changes.
std::vector<std::byte> made(const Runner& runner, const TensorInitializer& tensor, DType dtype,
                            std::int64_t first, std::int64_t count, std::int64_t offset) {
  constexpr std::int64_t kBeside = 8;  // elements, whole packs
  const std::int64_t size = size_of(dtype);
  TestTensor memory(TensorType(dtype, {offset + count + 2 * kBeside}));
  std::fill(memory.bytes().begin(), memory.bytes().end(), kBefore);
  const Attributes attributes = tensor.attributes(dtype, first, count);
  const Tensor out{initialize_operation().infer({}, attributes).front(),
                   memory.bytes().data() + (kBeside + offset) * size};
  runner(initialize_operation(), {}, {&out, 1}, attributes);
  const auto begin = memory.bytes().begin() + (kBeside + offset) * size;
  const auto end = begin + count * size;
  const auto untouched = [](std::byte byte) { return byte == kBefore; };
  EXPECT_TRUE(std::all_of(memory.bytes().begin(), begin, untouched));
  EXPECT_TRUE(std::all_of(end, memory.bytes().end(), untouched));
  return {begin, end};
}

// Numbers that the C library's log, cos and sin give. Weights of runs depend on them.
TEST(Initialize, GivesTheseNumbers) {
  const std::pair<std::int64_t, float> kNumbers[] = {
      {0, -0x1.0fbcb4p-5F}, {1, 0x1.89c4fep-7F}, {2, 0x1.f756p-9F},
      {3, 0x1.0a3de2p-7F},  {4, 0x1.12b2aep-5F}, {5, -0x1.6a6414p-7F},
      {6, 0x1.bbb028p-7F},  {7, 0x1.ee9194p-8F}, {1000000001, 0x1.cb081p-13F}};
  for (const auto& [i, number] : kNumbers) {
    float value = 0;
    initial_values(InitialValues::from(kNormal.attributes(DType::f32, i, 1)), i, {&value, 1});
    EXPECT_EQ(value, number) << i;
  }
}

TEST(Initialize, MakesTheSameElementsInWhateverPieces) {
  for (const auto& [name, runner] : all_runners())
    for (const DType dtype : kTypes) {
      EXPECT_EQ(made(runner, kNormal, dtype, 0, 40'003, 0), expected(kNormal, dtype, 0, 40'003))
          << name << ' ' << name_of(dtype);
      for (const std::int64_t first : {1, 2, 3, 4, 1'000'000'007})
        for (const std::int64_t offset : {0, 1, 2, 3})
          for (const std::int64_t count : {1, 2, 7, 1030})
            EXPECT_EQ(made(runner, kNormal, dtype, first, count, offset),
                      expected(kNormal, dtype, first, count))
                << name << ' ' << name_of(dtype) << " [" << first << ", + " << count << ") at "
                << offset;
    }
}

TEST(Initialize, PiecesOfOneTensorFitTogether) {
  std::vector<std::byte> together;
  for (const auto& [first, count] : {std::pair{0, 5}, std::pair{5, 90}, std::pair{95, 33}}) {
    const auto piece = made(any_runner(), kNormal, DType::bf16, first, count, 0);
    together.insert(together.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(together, made(any_runner(), kNormal, DType::bf16, 0, 128, 0));
}

TEST(Initialize, EachTensorAndEachSeedHasItsOwnNumbers) {
  const auto numbers = [](TensorInitializer tensor) {
    return made(any_runner(), tensor, DType::f32, 0, 8, 0);
  };
  const std::vector<std::byte> some = numbers(kNormal);
  for (const std::uint64_t bit : {0, 31, 32, 55}) {
    TensorInitializer other = kNormal;
    other.tensor ^= std::uint64_t{1} << bit;
    EXPECT_NE(numbers(other), some) << "bit " << bit << " of the tensor";
  }
  for (const std::int64_t seed : {std::int64_t{1234567890122}, std::int64_t{-1234567890123}}) {
    TensorInitializer other = kNormal;
    other.seed = seed;
    EXPECT_NE(numbers(other), some) << seed;
  }
}

TEST(Initialize, ConstantsFillEverything) {
  for (const auto& [name, runner] : all_runners())
    for (const DType dtype : kTypes)
      for (const double constant : {0.0, 1.0, -0.3}) {
        const TensorInitializer tensor{.constant = constant};
        std::vector<float> values(1029, static_cast<float>(constant));
        std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
        store_initial_values(values, dtype, bytes.data());
        EXPECT_EQ(made(runner, tensor, dtype, 2, 1029, 1), bytes)
            << name << ' ' << name_of(dtype) << ' ' << constant;
      }
}

TEST(Initialize, AParameterAndItsRemainderAreTheMaster) {
  const auto as = [](DType dtype) { return expected(kNormal, dtype, 3, 4000); };
  const std::vector<std::byte> master = as(DType::f32), parameter = as(DType::bf16),
                               remainder = as(DType::i16);
  for (std::size_t i = 0; i < 4000; ++i) {
    float whole = 0;
    std::uint16_t upper = 0;
    std::int16_t lower = 0;
    std::memcpy(&whole, &master[4 * i], sizeof whole);
    std::memcpy(&upper, &parameter[2 * i], sizeof upper);
    std::memcpy(&lower, &remainder[2 * i], sizeof lower);
    ASSERT_EQ(master_from_parts(upper, lower), whole) << i;
  }
}

TEST(Initialize, RefusesWhatIsNoDeviationOrNoFloat) {
  for (const double deviation : {-1.0, std::numeric_limits<double>::infinity()})
    EXPECT_THROW((void)initialize_operation().infer(
                     {}, {{"dtype", 0}, {"rows", 4}, {"deviation", deviation}}),
                 InvalidArgument);
  EXPECT_THROW((void)initialize_operation().infer(
                   {}, {{"dtype", static_cast<double>(DType::i32)}, {"rows", 4}}),
               InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
