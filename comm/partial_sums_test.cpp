#include "comm/partial_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "comm/hosts/tree_of_sums.h"
#include "comm/seat.h"
#include "comm/testing/scalar_model.h"
#include "core/error.h"

namespace strata::comm {
namespace {

using Subtrees = std::vector<Subtree>;

HostLayout equal_hosts(int hosts, int ranks) {
  HostLayout layout{{}, hosts * ranks};
  for (int host = 0; host < hosts; ++host) layout.first_ranks.push_back(host * ranks);
  return layout;
}

TEST(PartialSums, AHostAddsItsLargestAlignedSubtrees) {
  EXPECT_EQ(largest_subtrees(0, 4, 8), (Subtrees{{0, 4}}));
  EXPECT_EQ(largest_subtrees(4, 8, 8), (Subtrees{{4, 4}}));
  EXPECT_EQ(largest_subtrees(0, 2, 5), (Subtrees{{0, 2}}));
  // The last leaves of the world have no neighbours that could be missing.
  EXPECT_EQ(largest_subtrees(2, 5, 5), (Subtrees{{2, 2}, {4, 1}}));
  EXPECT_EQ(largest_subtrees(4, 7, 7), (Subtrees{{4, 3}}));
  EXPECT_EQ(largest_subtrees(3, 6, 6), (Subtrees{{3, 1}, {4, 2}}));
  EXPECT_EQ(largest_subtrees(0, 3, 6), (Subtrees{{0, 2}, {2, 1}}));
  EXPECT_EQ(largest_subtrees(0, 6, 6), (Subtrees{{0, 6}})) << "one host has the whole tree";
}

TEST(PartialSums, EverySumThatIsSentIsReceived) {
  for (const HostLayout& layout :
       {HostLayout{{0, 1}, 2}, HostLayout{{0, 2}, 5}, HostLayout{{0, 3}, 4},
        HostLayout{{0, 2, 4}, 6}, equal_hosts(16, 8)}) {
    int sent = 0, received = 0;
    for (int rank = 0; rank < layout.world; ++rank) {
      for (const PartialSum& sum : sums_to(layout, rank)) {
        ++received;
        int matches = 0;
        for (const PartialSum& other : sums_from(layout, sum.from))
          matches += other.to == rank && other.subtree == sum.subtree ? 1 : 0;
        EXPECT_EQ(matches, 1);
      }
      sent += static_cast<int>(sums_from(layout, rank).size());
    }
    EXPECT_EQ(sent, received);
  }
}

TEST(PartialSums, OfManyEqualHostsEachSendsOneSumOfAPiece) {
  for (const int hosts : {16, 64}) {
    const HostLayout layout = equal_hosts(hosts, 8);
    Collective sum{.kind = CollectiveKind::reduce_scatter,
                   .input_type = DType::bf16,
                   .wire_type = DType::bf16};
    for (int rank = 0; rank <= layout.world; ++rank) sum.partition.bounds.push_back(rank * 1024);
    EXPECT_NO_THROW(validate(sum, 0, layout.world, layout.ranks(0)));
    EXPECT_THROW(validate(sum, 0, layout.world), InvalidArgument) << "of ranks in one level";
    for (const int rank : {0, 7, layout.world - 1}) {
      const Seat seat{rank, layout.world, Exchange::hosts, layout.first_ranks};
      EXPECT_EQ(std::ssize(sums_from(layout, rank)), hosts - 1);
      EXPECT_EQ(workspace_bytes(seat, sum), 2 * (hosts - 1) * 1024 * 4);
    }
  }
}

TEST(PartialSums, ContributionsComeFromTheirOwnRanks) {
  // Rank 4 of 2 + 3 is in no sum of its host; its counterparts on the first host are 0 and 1.
  const HostLayout layout{{0, 2}, 5};
  for (const int to : {0, 1}) {
    const std::vector<PartialSum> sums = sums_to(layout, to);
    ASSERT_EQ(sums.size(), 2U);
    EXPECT_EQ(sums[0].from, 2 + to) << "the counterpart";
    EXPECT_EQ(sums[0].subtree, (Subtree{2, 2}));
    EXPECT_EQ(sums[1].from, 4);
    EXPECT_EQ(sums[1].subtree, (Subtree{4, 1}));
  }
  EXPECT_EQ(made_sums(layout, 1), (Subtrees{{2, 2}}));
  EXPECT_TRUE(covers(made_sums(layout, 1), 3));
  EXPECT_FALSE(covers(made_sums(layout, 1), 4));
}

/// Adds `count` elements of `world` ranks, where the ranks before each border form hosts; every
/// host's sums are made as it would send them, but those of host `own`, whose contributions stay.
std::vector<float> sum_in_parts(const HostLayout& layout, int own, DType input, DType wire,
                                const std::vector<std::vector<std::byte>>& leaves,
                                std::int64_t count) {
  std::vector<std::vector<float>> made;
  std::vector<const std::byte*> parts;
  made.reserve(leaves.size());
  parts.reserve(leaves.size());
  std::vector<SumPart> sums;
  for (int host = 0; host < layout.hosts(); ++host) {
    for (const Subtree& subtree : subtrees_of(layout, host)) {
      std::vector<SumPart> part{{{0, subtree.leaves}, {}, input, wire}};
      const std::size_t first = parts.size();
      for (int leaf = 0; leaf < subtree.leaves; ++leaf)
        parts.push_back(leaves[static_cast<std::size_t>(subtree.first + leaf)].data());
      const std::span<const std::byte* const> contributions{
          parts.data() + first, static_cast<std::size_t>(subtree.leaves)};
      if (host == own) {
        sums.push_back({subtree, contributions, input, wire});
        continue;
      }
      part[0].parts = contributions;
      made.emplace_back(static_cast<std::size_t>(count));
      sum_tree(part, subtree.leaves, 0, count, 1.0f, made.back().data());
      parts[first] = reinterpret_cast<const std::byte*>(made.back().data());
      sums.push_back({subtree, {parts.data() + first, 1}, DType::f32, DType::f32});
    }
  }
  std::vector<float> out(static_cast<std::size_t>(count));
  const std::int64_t border = count / 3;
  sum_tree(sums, layout.world, 0, border, 1.0f / 3.0f, out.data());
  sum_tree(sums, layout.world, border, count - border, 1.0f / 3.0f, out.data() + border);
  return out;
}

TEST(TreeOfSums, GivesTheBitsOfTheWholeTree) {
  constexpr std::int64_t kCount = 1500;
  for (const HostLayout& layout :
       {HostLayout{{0, 1}, 2}, HostLayout{{0, 2}, 5}, HostLayout{{0, 3}, 6}, HostLayout{{0, 1}, 7},
        HostLayout{{0, 3, 4, 9}, 13}, HostLayout{{0, 8}, 16}, HostLayout{{0, 31}, 64},
        equal_hosts(16, 8), equal_hosts(300, 1)})
    for (const DType input : {DType::f32, DType::bf16})
      for (const DType wire : {DType::f32, DType::bf16, DType::f16}) {
        std::vector<std::vector<std::byte>> leaves;
        for (int rank = 0; rank < layout.world; ++rank) {
          leaves.emplace_back(static_cast<std::size_t>(kCount * size_of(input)));
          for (std::int64_t i = 0; i < kCount; ++i)
            store(leaves.back().data(), input, i, pattern(input, rank, i, 5));
        }
        const std::vector<float> sums = sum_in_parts(layout, 1, input, wire, leaves, kCount);
        for (std::int64_t i = 0; i < kCount; ++i) {
          std::vector<float> values;
          for (int rank = 0; rank < layout.world; ++rank)
            values.push_back(pattern(input, rank, i, 5));
          const float expected = tree_sum(values, wire, 1.0f / 3.0f);
          const float found = sums[static_cast<std::size_t>(i)];
          if (std::isnan(expected) && std::isnan(found)) continue;
          ASSERT_EQ(std::bit_cast<std::uint32_t>(expected), std::bit_cast<std::uint32_t>(found))
              << "element " << i << " of " << layout.world << " ranks";
        }
      }
}

TEST(HostLayout, FindsHostsAndCounterparts) {
  const HostLayout layout{{0, 2}, 5};
  EXPECT_EQ(layout.host_of(1), 0);
  EXPECT_EQ(layout.host_of(2), 1);
  EXPECT_EQ(layout.ranks(1), 3);
  EXPECT_EQ(layout.local(4), 2);
  EXPECT_EQ(layout.counterpart(1, 1), 3);
  EXPECT_EQ(layout.counterpart(4, 0), 0) << "a host with fewer ranks begins again";
  EXPECT_EQ(layout.served_by(0), (std::vector<int>{2, 4}));
  EXPECT_EQ(layout.served_by(4), (std::vector<int>{}));
  for (const HostLayout& other : {layout, HostLayout{{0, 3, 4, 9}, 13}, HostLayout{{0}, 3}})
    for (int rank = 0; rank < other.world; ++rank)
      EXPECT_EQ(other.count_served_by(rank), std::ssize(other.served_by(rank))) << rank;
  EXPECT_ANY_THROW(validate(HostLayout{{0, 5}, 5}));
  EXPECT_ANY_THROW(validate(HostLayout{{0, 3, 3}, 5}));
  EXPECT_ANY_THROW(validate(HostLayout{{1, 3}, 5}));
}

/// Bytes of 128 elements each for what one rank of 2 + 3 makes and gets.
std::int64_t needed(const HostLayout& layout, int rank, const Collective& sum) {
  std::int64_t bytes = 0;
  const auto add = [&](const PartialSum& partial) {
    bytes += padded_piece(sum.partition.count(partial.to) *
                          size_of(sum_type(partial.subtree, sum.wire_type)));
  };
  for (const PartialSum& partial : sums_to(layout, rank)) add(partial);
  for (const PartialSum& partial : sums_from(layout, rank))
    if (partial.subtree.leaves > 1 || sum.input_type != sum.wire_type) add(partial);
  return bytes;
}

TEST(HostLayout, ScratchHoldsTheSumsOfEveryRank) {
  for (const HostLayout& layout :
       {HostLayout{{0, 2}, 5}, HostLayout{{0, 1}, 2}, HostLayout{{0, 2, 4}, 6},
        HostLayout{{0, 3, 4, 9}, 13}, HostLayout{{0, 1}, 7}})
    for (const DType input : {DType::f32, DType::bf16})
      for (const DType wire : {DType::f32, DType::bf16}) {
        Collective sum{
            .kind = CollectiveKind::reduce_scatter, .input_type = input, .wire_type = wire};
        for (int rank = 0; rank <= layout.world; ++rank) sum.partition.bounds.push_back(rank * 128);
        std::int64_t most = 0;
        for (int rank = 0; rank < layout.world; ++rank) {
          most = std::max(most, needed(layout, rank, sum));
          EXPECT_EQ(workspace_bytes({rank, layout.world, Exchange::hosts, layout.first_ranks}, sum),
                    workspace_bytes({0, layout.world, Exchange::hosts, layout.first_ranks}, sum))
              << "a Plan that fits one rank fits all";
        }
        EXPECT_EQ(workspace_bytes({0, layout.world, Exchange::hosts, layout.first_ranks}, sum),
                  most)
            << layout.world << " ranks on " << layout.hosts() << " hosts";
      }
}

TEST(HostLayout, ScratchOfTwoAndThreeRanks) {
  const Collective sum{.kind = CollectiveKind::reduce_scatter,
                       .input_type = DType::f32,
                       .wire_type = DType::bf16,
                       .partition = {{0, 128, 256, 384, 512, 640}}};
  // Rank 0 makes sums for ranks 2 and 4, and gets those of {2, 3} and of 4 for its piece.
  EXPECT_EQ(workspace_bytes({4, 5, Exchange::hosts, {0, 2}}, sum), 2 * 128 * 4 + 128 * (4 + 2));
  EXPECT_EQ(workspace_bytes({4, 5, Exchange::hosts, {0, 2}}, integer_sum(5, 5)), 2 * 40);
  EXPECT_EQ(workspace_bytes({0, 1, Exchange::hosts, {}}, integer_sum(5, 1)), 40);
}

}  // namespace
}  // namespace strata::comm
