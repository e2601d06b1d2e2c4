#include "comm/seat.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::comm {
namespace {

/// A collective of two ranks with 100 and 28 elements, rounded to bf16 on the way.
Collective reduction(CollectiveKind kind = CollectiveKind::reduce_scatter) {
  Collective collective;
  collective.kind = kind;
  collective.input_type = DType::f32;
  collective.wire_type = DType::bf16;
  collective.partition.bounds = {0, 100, 128};
  return collective;
}

std::int64_t scratch(Exchange exchange, int rank, const Collective& collective) {
  return workspace_bytes({rank, 2, exchange}, collective);
}

TEST(Seat, ScratchFollowsFromTheExchange) {
  EXPECT_EQ(scratch(Exchange::none, 0, reduction()), 0);
  EXPECT_EQ(scratch(Exchange::peer_memory, 0, reduction()), 0) << "peers are read in place";
  // Scratch: the own contribution in bf16, and a piece of the peer's, each padded to 64 bytes.
  EXPECT_EQ(scratch(Exchange::messages, 0, reduction()), 256 + 256);
  EXPECT_EQ(scratch(Exchange::messages, 1, reduction()), 256 + 64);
  EXPECT_EQ(workspace_bytes({0, 5, Exchange::native_messages}, reduction()), 256 + 256);
  EXPECT_EQ(scratch(Exchange::own_rounding, 0, reduction()), 256);
  Collective same = reduction();
  same.wire_type = DType::f32;
  EXPECT_EQ(scratch(Exchange::messages, 1, same), 128) << "nothing is converted";
  EXPECT_EQ(scratch(Exchange::own_rounding, 0, same), 0);
  const Collective sum = integer_sum(5, 2);
  EXPECT_EQ(scratch(Exchange::peer_memory, 0, sum), 40);
  EXPECT_EQ(scratch(Exchange::messages, 0, sum), 0);
}

TEST(Seat, ScratchOfMessagesOverHosts) {
  Collective sum = reduction();
  sum.partition.bounds = {0, 128, 256, 384, 512};
  const auto scratch = [&](const std::vector<int>& first_ranks) {
    return workspace_bytes({3, 4, Exchange::host_messages, first_ranks}, sum);
  };
  // Of 2 x 2 ranks each adds up its own piece and its counterpart's: two contributions come, two
  // sums are made, one comes.
  EXPECT_EQ(scratch({0, 2}), 512 * 2 + 128 * (2 * 2 + 3 * 4));
  EXPECT_EQ(scratch({0, 1, 2, 3}), 512 * 2 + 128 * 3 * 2) << "contributions alone";
  EXPECT_EQ(scratch({}), 512 * 2 + 128 * (3 * 2 + 4)) << "one host makes one sum";
  // Rank 1 of 1 + 3 serves rank 0: two contributions to its own piece and two to rank 0's come, it
  // makes {2, 3} of both, gets contribution 0, and adds {0, 1} in a slot.
  EXPECT_EQ(scratch({0, 1}), 512 * 2 + 128 * (4 * 2 + 2 * 4 + 2 + 4));
}

TEST(Seat, ARankSendsWhatItsPeersLack) {
  const Seat first{0, 2, Exchange::messages}, second{1, 2, Exchange::messages};
  EXPECT_EQ(sent_bytes(first, reduction()), 28 * 2);
  EXPECT_EQ(sent_bytes(second, reduction()), 100 * 2);
  EXPECT_EQ(sent_bytes(first, reduction(CollectiveKind::all_gather)), 100 * 4);
  EXPECT_EQ(sent_bytes(second, reduction(CollectiveKind::all_gather)), 28 * 4);
  EXPECT_EQ(sent_bytes({}, integer_sum(5, 1)), 0) << "nobody else is there";
}

TEST(Seat, NoMoreRanksAddThanKernelsCan) {
  EXPECT_NO_THROW(require_sums({.rank = 0, .ranks = 64, .exchange = Exchange::peer_memory}));
  EXPECT_THROW(require_sums({.rank = 0, .ranks = 65, .exchange = Exchange::peer_memory}),
               ConfigError);
  EXPECT_THROW(require_sums({.rank = 0, .ranks = 65, .exchange = Exchange::messages}), ConfigError);
  EXPECT_NO_THROW(require_sums({.rank = 0, .ranks = 65, .exchange = Exchange::native_messages}));
  EXPECT_NO_THROW(
      require_sums({.rank = 0, .ranks = 128, .exchange = Exchange::hosts, .first_ranks = {0, 64}}));
  EXPECT_THROW(
      require_sums({.rank = 0, .ranks = 128, .exchange = Exchange::hosts, .first_ranks = {0, 63}}),
      ConfigError);
}

}  // namespace
}  // namespace strata::comm
