#include "comm/sum_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "comm/testing/scalar_model.h"
#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {
namespace {

SumSteps steps_of(const HostLayout& layout, DType wire_type) {
  return sum_steps(subtrees_of(layout), layout.world, wire_type);
}

TEST(SumSteps, EqualHostsNeedOne) {
  for (const DType wire : {DType::f32, DType::bf16})
    for (const HostLayout& layout : {HostLayout{{0, 2}, 4}, HostLayout{{0, 2, 4}, 6},
                                     HostLayout{{0, 1, 2}, 3}, HostLayout{{0}, 5}}) {
      const SumSteps found = steps_of(layout, wire);
      ASSERT_EQ(found.steps.size(), 1U);
      EXPECT_EQ(found.steps[0].slot, SumStep::kResult);
      EXPECT_EQ(found.slots, 0);
      EXPECT_EQ(found.steps[0].operands.size(), layout.first_ranks.size());
      EXPECT_EQ(found.steps[0].type, layout.world == 3 ? wire : DType::f32);
    }
}

TEST(SumSteps, ContributionsAreWidenedBesideSums) {
  // Parts are {0, 1}, {2, 3} and the contribution of 4.
  const SumSteps narrow = steps_of({{0, 2}, 5}, DType::bf16);
  ASSERT_EQ(narrow.steps.size(), 3U);
  EXPECT_EQ(narrow.steps[0].operands, (std::vector<int>{0, 1}));
  EXPECT_EQ(narrow.steps[1].operands, (std::vector<int>{2}));
  EXPECT_EQ(narrow.steps[1].type, DType::bf16);
  EXPECT_EQ(narrow.steps[2].operands, (std::vector<int>{3, 4})) << "slots";
  EXPECT_EQ(narrow.slots, 2);
  EXPECT_EQ(steps_of({{0, 2}, 5}, DType::f32).steps.size(), 1U) << "all are fp32";
}

/// Returns the layout of hosts with `ranks` each.
HostLayout equal_hosts(int hosts, int ranks) {
  HostLayout layout{{}, hosts * ranks};
  for (int host = 0; host < hosts; ++host) layout.first_ranks.push_back(host * ranks);
  return layout;
}

TEST(SumSteps, AddNoMoreAtATimeThanOneSumMay) {
  for (const HostLayout& layout :
       {equal_hosts(64, 2), equal_hosts(72, 2), equal_hosts(65, 1), equal_hosts(200, 1)})
    for (const DType wire : {DType::f32, DType::bf16}) {
      std::size_t most = 0;
      for (const SumStep& step : steps_of(layout, wire).steps)
        most = std::max(most, step.operands.size());
      EXPECT_EQ(most, 64U) << layout.hosts() << " hosts";
    }
}

/// Adds one element of every rank as the steps say; slots that were never written are NaN.
float sum_by_steps(const HostLayout& layout, DType wire, const std::vector<float>& values) {
  const std::vector<Subtree> parts = subtrees_of(layout);
  std::vector<float> operands;
  for (const Subtree& part : parts) {
    const auto first = values.begin() + part.first;
    operands.push_back(tree_sum({first, first + part.leaves}, wire, 1.0f));
  }
  const SumSteps found = sum_steps(parts, layout.world, wire);
  operands.resize(parts.size() + static_cast<std::size_t>(found.slots), std::nanf(""));
  float result = std::nanf("");
  for (const SumStep& step : found.steps) {
    std::vector<const std::byte*> from;
    for (const int operand : step.operands)
      from.push_back(
          reinterpret_cast<const std::byte*>(&operands[static_cast<std::size_t>(operand)]));
    float& to = step.slot == SumStep::kResult
                    ? result
                    : operands[parts.size() + static_cast<std::size_t>(step.slot)];
    kernels::ordered_sum(nullptr, from, DType::f32, DType::f32, 1, 1.0f, &to);
  }
  return result;
}

TEST(SumSteps, GiveTheBitsOfTheWholeTree) {
  for (const HostLayout& layout :
       {HostLayout{{0, 1}, 2}, HostLayout{{0, 2}, 5}, HostLayout{{0, 3}, 6}, HostLayout{{0, 1}, 7},
        HostLayout{{0, 1, 3}, 4}, HostLayout{{0, 3, 4, 9}, 13}, HostLayout{{0, 2, 4}, 8},
        HostLayout{{0, 1, 2, 3, 4, 5, 6}, 8}, HostLayout{{0, 2, 4, 6, 8, 10, 12}, 16},
        HostLayout{{0, 31}, 64}, equal_hosts(72, 2), equal_hosts(65, 1), equal_hosts(129, 1)})
    for (const DType wire : {DType::f32, DType::bf16, DType::f16})
      for (std::int64_t i = 0; i < 200; ++i) {
        std::vector<float> values;
        for (int rank = 0; rank < layout.world; ++rank)
          values.push_back(static_cast<float>((i * 37 + rank * 101) % 997) / 7.0f - 60.0f);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(sum_by_steps(layout, wire, values)),
                  std::bit_cast<std::uint32_t>(tree_sum(values, wire, 1.0f)))
            << "element " << i << " of " << layout.world << " ranks";
      }
}

}  // namespace
}  // namespace strata::comm
