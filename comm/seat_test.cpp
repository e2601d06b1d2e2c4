#include "comm/seat.h"

#include <gtest/gtest.h>

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

TEST(Seat, ARankSendsWhatItsPeersLack) {
  const Seat first{0, 2, Exchange::messages}, second{1, 2, Exchange::messages};
  EXPECT_EQ(sent_bytes(first, reduction()), 28 * 2);
  EXPECT_EQ(sent_bytes(second, reduction()), 100 * 2);
  EXPECT_EQ(sent_bytes(first, reduction(CollectiveKind::all_gather)), 100 * 4);
  EXPECT_EQ(sent_bytes(second, reduction(CollectiveKind::all_gather)), 28 * 4);
  EXPECT_EQ(sent_bytes({}, integer_sum(5, 1)), 0) << "nobody else is there";
}

}  // namespace
}  // namespace strata::comm
