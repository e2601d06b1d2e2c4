// Compares the bits of the device's ordered sums with those of the CPU.
#include "kernels/cuda/ordered_sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/ordered_sum.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/testing/kernel_test_support.h"

namespace strata::cuda {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};
constexpr float kScale = 1.0F / 3;

/// Memory that begins `shift` bytes after a multiple of 64.
class Bytes {
 public:
  Bytes(std::int64_t bytes, std::int64_t shift)
      : bytes_(bytes), storage_(static_cast<std::size_t>(bytes + shift + 64), std::byte{0xff}) {
    const auto past = reinterpret_cast<std::uintptr_t>(storage_.data()) % 64;
    first_ = (64 - past) % 64 + static_cast<std::size_t>(shift);
  }
  std::byte* data() { return storage_.data() + first_; }
  [[nodiscard]] std::vector<std::byte> copy() { return {data(), data() + bytes_}; }

 private:
  std::int64_t bytes_;
  std::vector<std::byte> storage_;
  std::size_t first_ = 0;
};

/// Fills `bytes` with values of such different sizes that another order of sums has other bits.
void fill(Bytes& bytes, DType type, std::int64_t count, std::uint32_t seed) {
  const std::vector<float> values = kernels::random_floats(count, seed, 100);
  kernels::convert_range(DType::f32, reinterpret_cast<const std::byte*>(values.data()), type,
                         bytes.data(), count);
}

struct Case {
  int ranks;
  DType wire = DType::f32;
  std::int64_t count = 600;
  std::int64_t shift = 0;  ///< bytes
  bool in_place = false;   ///< the sum replaces the second contribution
};

void expect_same_bits(const Case& c) {
  SCOPED_TRACE(std::to_string(c.ranks) + " of " + std::string(name_of(c.wire)) + " count " +
               std::to_string(c.count) + " shift " + std::to_string(c.shift));
  std::vector<Bytes> contributions;
  std::vector<const std::byte*> pointers;
  for (int rank = 0; rank < c.ranks; ++rank) {
    contributions.emplace_back(c.count * size_of(c.wire), c.shift);
    fill(contributions.back(), c.wire, c.count, static_cast<std::uint32_t>(rank) + 1);
  }
  for (Bytes& contribution : contributions) pointers.push_back(contribution.data());
  Bytes right(c.count * 4, 0), separate(c.count * 4, c.shift);
  kernels::ordered_sum(nullptr, pointers, c.wire, c.wire, c.count, kScale,
                       reinterpret_cast<float*>(right.data()));
  Bytes& found = c.in_place ? contributions[1] : separate;
  SimulatedStream stream(ThreadOrder::shuffled);
  ordered_sum(stream, pointers, c.wire, c.count, kScale, reinterpret_cast<float*>(found.data()));
  EXPECT_TRUE(found.copy() == right.copy());
}

TEST(CudaOrderedSum, HasTheBitsOfTheCpuForEveryWorld) {
  for (const DType wire : kTypes)
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17, 31, 33, 48, 63, 64})
      expect_same_bits({.ranks = ranks, .wire = wire});
}

TEST(CudaOrderedSum, TakesAnyCountAndAlignment) {
  for (const DType wire : kTypes)
    for (const std::int64_t count : {1, 3, 4, 7, 8, 9, 1023, 2049, 5000})
      for (const std::int64_t shift : {0, 4})
        expect_same_bits({.ranks = 5, .wire = wire, .count = count, .shift = shift});
}

TEST(CudaOrderedSum, MayReplaceAContribution) {
  for (const std::int64_t shift : {0, 4})
    for (const int ranks : {2, 11})
      expect_same_bits({.ranks = ranks, .count = 1001, .shift = shift, .in_place = true});
}

TEST(CudaOrderedSum, RoundsToTheWireAsTheCpuDoes) {
  for (const DType from : kTypes)
    for (const DType to : kTypes)
      for (const std::int64_t count : {0, 1, 5, 1024, 3001})
        for (const std::int64_t shift : {0, 4}) {
          Bytes input(count * size_of(from), shift);
          Bytes right(count * size_of(to), 0), found(count * size_of(to), shift);
          fill(input, from, count, 7);
          kernels::convert_to_wire(nullptr, from, input.data(), to, count, right.data());
          SimulatedStream stream(ThreadOrder::backward);
          convert_to_wire(stream, from, input.data(), to, count, found.data());
          EXPECT_TRUE(found.copy() == right.copy())
              << name_of(from) << " to " << name_of(to) << ", " << count;
        }
}

}  // namespace
}  // namespace strata::cuda
