#include "kernels/cpu/ordered_sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/testing/kernel_test_support.h"
#include "kernels/testing/ordered_sum_reference.h"
#include "kernels/testing/target_scope.h"

namespace strata::kernels {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};
constexpr float kScale = 1.0F / 3;

/// The contributions of `ranks` ranks, as stored and as numbers. Magnitudes differ, so that any
/// other order of additions shows in the bits.
struct Contributions {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<std::vector<float>> values;
  std::vector<const std::byte*> pointers;

  Contributions(int ranks, DType type, std::int64_t count) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> random = random_floats(count, static_cast<std::uint32_t>(rank) + 1, 100);
      std::vector<std::byte>& stored =
          bytes.emplace_back(static_cast<std::size_t>(count * size_of(type)));
      convert_range(DType::f32, reinterpret_cast<const std::byte*>(random.data()), type,
                    stored.data(), count);
      convert_range(type, stored.data(), DType::f32, reinterpret_cast<std::byte*>(random.data()),
                    count);
      values.push_back(random);
    }
    for (const auto& stored : bytes) pointers.push_back(stored.data());
  }

  [[nodiscard]] std::vector<float> expected(DType wire, float scale) const {
    std::vector<float> sums(values[0].size());
    std::vector<float> leaves(values.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      for (std::size_t rank = 0; rank < leaves.size(); ++rank)
        leaves[rank] = through_wire(values[rank][i], wire);
      sums[i] = scale * tree_sum_reference(leaves);
    }
    return sums;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(OrderedSum, AddsInTheTreeForEveryWorldAndTypePair) {
  constexpr std::int64_t kCount = 1100;  // two whole blocks and a rest
  with_each_target([&](const char* target) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 23, 31, 48, 63, 64})
      for (const DType input : kTypes) {
        const Contributions contributions(ranks, input, kCount);
        for (const DType wire : kTypes) {
          std::vector<float> out(kCount);
          ordered_sum(nullptr, contributions.pointers, input, wire, kCount, kScale, out.data());
          ASSERT_TRUE(same_bits(out, contributions.expected(wire, kScale)))
              << target << ' ' << ranks << ' ' << name_of(input) << ' ' << name_of(wire);
        }
      }
  });
}

TEST(OrderedSum, ThreeRanksAreNotAddedInAnotherOrder) {
  // (1 + 1e8) - 1e8 = 0 in fp32, 1 + (1e8 - 1e8) = 1.
  const float a[] = {1}, b[] = {1e8F}, c[] = {-1e8F};
  const std::byte* pointers[] = {reinterpret_cast<const std::byte*>(a),
                                 reinterpret_cast<const std::byte*>(b),
                                 reinterpret_cast<const std::byte*>(c)};
  float out = -1;
  ordered_sum(nullptr, pointers, DType::f32, DType::f32, 1, 1, &out);
  EXPECT_EQ(out, 0);
}

TEST(OrderedSum, ThreadsDoNotChangeBits) {
  constexpr std::int64_t kCount = 200'000;
  const Contributions contributions(5, DType::f32, kCount);
  const std::vector<float> expected = contributions.expected(DType::bf16, kScale);
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    std::vector<float> out(kCount);
    ordered_sum(&pool, contributions.pointers, DType::f32, DType::bf16, kCount, kScale, out.data());
    EXPECT_TRUE(same_bits(out, expected)) << threads;
  }
}

TEST(OrderedSum, LargeOutputsAroundTheCacheHaveTheSameBits) {
  constexpr std::int64_t kCount = (1 << 20) + 37;
  ThreadPool pool(2);
  for (const int ranks : {2, 3, 9}) {
    const Contributions contributions(ranks, DType::f32, kCount);
    const std::vector<float> expected = contributions.expected(DType::f32, kScale);
    std::vector<float> storage(kCount + 32);
    for (const std::size_t shift : {0, 1}) {  // aligned for streaming, and not
      void* start = storage.data();
      std::size_t room = storage.size() * sizeof(float);
      float* out = static_cast<float*>(std::align(64, 4, start, room)) + shift;
      ordered_sum(&pool, contributions.pointers, DType::f32, DType::f32, kCount, kScale, out);
      EXPECT_EQ(std::memcmp(out, expected.data(), expected.size() * sizeof(float)), 0) << ranks;
    }
  }
}

TEST(OrderedSum, MayOverwriteOneContribution) {
  constexpr std::int64_t kCount = 5000;
  for (const int ranks : {1, 2, 3, 8, 11})
    for (int own = 0; own < ranks; ++own) {
      Contributions contributions(ranks, DType::f32, kCount);
      const std::vector<float> expected = contributions.expected(DType::f16, kScale);
      std::vector<std::byte>& mine = contributions.bytes[static_cast<std::size_t>(own)];
      ordered_sum(nullptr, contributions.pointers, DType::f32, DType::f16, kCount, kScale,
                  reinterpret_cast<float*>(mine.data()));
      ASSERT_EQ(std::memcmp(mine.data(), expected.data(), mine.size()), 0) << ranks << ' ' << own;
    }
}

TEST(OrderedSum, RoundingFirstAndAddingThenGivesTheSameBits) {
  constexpr std::int64_t kCount = 70'000;
  ThreadPool pool(2);
  for (const DType input : kTypes)
    for (const DType wire : kTypes) {
      const Contributions contributions(3, input, kCount);
      std::vector<std::vector<std::byte>> sent;
      std::vector<const std::byte*> pointers;
      for (const std::byte* from : contributions.pointers) {
        sent.emplace_back(static_cast<std::size_t>(kCount * size_of(wire)));
        convert_to_wire(&pool, input, from, wire, kCount, sent.back().data());
      }
      for (const auto& bytes : sent) pointers.push_back(bytes.data());
      std::vector<float> out(kCount);
      ordered_sum(&pool, pointers, wire, wire, kCount, kScale, out.data());
      EXPECT_TRUE(same_bits(out, contributions.expected(wire, kScale)))
          << name_of(input) << ' ' << name_of(wire);
    }
}

}  // namespace
}  // namespace strata::kernels
