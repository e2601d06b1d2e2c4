#include "comm/testing/conformance.h"

#include <algorithm>
#include <array>
#include <random>

#include "comm/agreement.h"
#include "comm/host_stream.h"
#include "comm/partial_sums.h"
#include "comm/testing/checked_collectives.h"
#include "core/error.h"

namespace strata::comm {
namespace {

constexpr std::size_t kArenaBytes = 1 << 20;
constexpr std::array kFloats{DType::f32, DType::bf16, DType::f16};
constexpr std::array kTypes{DType::f32, DType::bf16, DType::f16, DType::f64,
                            DType::i32, DType::i64,  DType::u8};

Partition even(int world, std::int64_t count) {
  Partition partition;
  for (int rank = 0; rank <= world; ++rank) partition.bounds.push_back(rank * count);
  return partition;
}

TEST_P(CommConformance, GathersEveryPieceIntoItsPlace) {
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, kArenaBytes);
    std::uint64_t seed = 0;
    for (const DType type : kTypes)
      for (const Partition& partition : interesting_partitions(communicator.size()))
        for (const bool in_place : {false, true})
          run_checked(
              communicator, arena,
              {.kind = CollectiveKind::all_gather, .input_type = type, .partition = partition},
              ++seed, in_place);
    arena.close();
  });
}

TEST_P(CommConformance, SumsToTheBitAsTheScalarTreeDoes) {
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, kArenaBytes);
    std::uint64_t seed = 0;
    for (const DType input : kFloats)
      for (const DType wire : kFloats)
        for (const Partition& partition : interesting_partitions(communicator.size()))
          for (const float scale : {1.0f, 1.0f / 3.0f})
            run_checked(communicator, arena,
                        {.kind = CollectiveKind::reduce_scatter,
                         .input_type = input,
                         .wire_type = wire,
                         .partition = partition,
                         .scale = scale},
                        ++seed);
    arena.close();
  });
}

TEST_P(CommConformance, SumsPiecesThatTravelAsSeveralMessages) {
  constexpr std::int64_t kMessage = kSumElementsPerMessage;
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, 32 << 20);
    const int world = communicator.size();
    Partition partition{{0}};
    for (int rank = 0; rank < world; ++rank)
      partition.bounds.push_back(partition.total() + (rank == 0           ? kMessage + 37
                                                      : rank == world - 1 ? kMessage
                                                                          : 3));
    std::uint64_t seed = 0;
    for (const auto& [input, wire] :
         {std::pair{DType::f32, DType::f32}, {DType::f32, DType::bf16}, {DType::bf16, DType::bf16}})
      run_checked(communicator, arena,
                  {.kind = CollectiveKind::reduce_scatter,
                   .input_type = input,
                   .wire_type = wire,
                   .partition = partition},
                  ++seed);
    arena.close();
  });
}

TEST_P(CommConformance, SumsOverItsOwnPieceInPlace) {
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, kArenaBytes);
    std::uint64_t seed = 0;
    for (const DType wire : kFloats)
      for (const Partition& partition : interesting_partitions(communicator.size()))
        run_checked(communicator, arena,
                    {.kind = CollectiveKind::reduce_scatter,
                     .input_type = DType::f32,
                     .wire_type = wire,
                     .partition = partition,
                     .scale = 0.5f},
                    ++seed, true);
    arena.close();
  });
}

TEST_P(CommConformance, AddsIntegersWithWrapping) {
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, kArenaBytes);
    std::uint64_t seed = 0;
    for (const Partition& partition : interesting_partitions(communicator.size()))
      run_checked(
          communicator, arena,
          {.kind = CollectiveKind::all_reduce, .input_type = DType::i64, .partition = partition},
          ++seed);
    arena.close();
  });
}

TEST_P(CommConformance, BroadcastsAndExchanges) {
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, kArenaBytes);
    std::uint64_t seed = 0;
    for (const DType type : kTypes)
      for (const Partition& partition : interesting_partitions(communicator.size()))
        for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::all_to_all})
          run_checked(communicator, arena,
                      {.kind = kind, .input_type = type, .partition = partition}, ++seed);
    arena.close();
  });
}

/// Passes two messages to the next rank in a ring; rank 0 breaks the cycle by sending first.
void pass_around(Communicator& communicator, TestArena& arena, const Partition& partition,
                 std::uint64_t seed) {
  const int world = communicator.size();
  Collective send{.kind = CollectiveKind::send, .input_type = DType::u8, .partition = partition};
  Collective receive = send;
  receive.kind = CollectiveKind::receive;
  send.peer = (communicator.rank() + 1) % world;
  receive.peer = (communicator.rank() + world - 1) % world;
  for (const std::uint64_t message : {seed, seed + 1}) {
    if (communicator.rank() == 0) run_checked(communicator, arena, send, message);
    run_checked(communicator, arena, receive, message);
    if (communicator.rank() != 0) run_checked(communicator, arena, send, message);
  }
}

TEST_P(CommConformance, SendsFromRankToRank) {
  if (GetParam().world == 1) GTEST_SKIP() << "one rank has no peer";
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, kArenaBytes);
    std::uint64_t seed = 0;
    for (const Partition& partition : interesting_partitions(communicator.size()))
      pass_around(communicator, arena, partition, seed += 2);
    arena.close();
  });
}

TEST_P(CommConformance, KeepsOrderOverAThousandRandomCollectives) {
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, kArenaBytes);
    std::mt19937_64 random(42);  // gives the same choices on all ranks
    for (std::uint64_t round = 0; round < 1000 && !testing::Test::HasFailure(); ++round) {
      Collective collective;
      const bool pairs = communicator.size() > 1;
      collective.kind = static_cast<CollectiveKind>(random() % 8);
      collective.partition = even(communicator.size(), static_cast<std::int64_t>(random() % 40));
      for (std::int64_t& bound : collective.partition.bounds)
        bound += bound == 0 ? 0 : static_cast<std::int64_t>(random() % 2);
      std::sort(collective.partition.bounds.begin(), collective.partition.bounds.end());
      collective.input_type = kFloats[random() % 3];
      collective.wire_type = kFloats[random() % 3];
      if (collective.kind == CollectiveKind::all_reduce) collective.input_type = DType::i64;
      if (collective.kind == CollectiveKind::send || collective.kind == CollectiveKind::receive) {
        if (pairs) pass_around(communicator, arena, collective.partition, round * 2);
        continue;
      }
      run_checked(communicator, arena, collective, round, random() % 2 == 0);
    }
    arena.close();
  });
}

TEST_P(CommConformance, NumbersItsCollectives) {
  run_ranks([](Communicator& communicator) {
    HostStream stream;
    const std::int64_t before = communicator.begun();
    for (int call = 1; call <= 3; ++call) {
      communicator.run(stream, {.kind = CollectiveKind::barrier}, nullptr, nullptr, {});
      EXPECT_EQ(communicator.begun(), before + call);
    }
  });
}

TEST_P(CommConformance, TakesArenasOfDifferentSizesAndForgetsThem) {
  run_ranks([](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const Partition partition = even(communicator.size(), 1000);
    const Collective gather{.kind = CollectiveKind::all_gather, .partition = partition};
    for (std::uint64_t round = 0; round < 3; ++round) {
      TestArena first(communicator, kArenaBytes + rank * 12345);
      TestArena second(communicator, kArenaBytes * 2 - rank * 54321);
      // Operands are in different arenas on different ranks.
      run_checked(communicator, rank % 2 == 0 ? first : second, gather, round);
      first.close();
      run_checked(communicator, second, gather, round + 100);
      second.close();
    }
  });
}

TEST_P(CommConformance, MovesMoreThanOneMessageHolds) {
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, 80 << 20);
    Partition partition;
    partition.bounds.assign(static_cast<std::size_t>(communicator.size()) + 1, 35'000'001);
    partition.bounds[0] = 0;
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::broadcast})
      run_checked(communicator, arena,
                  {.kind = kind, .input_type = DType::u8, .partition = partition}, 7);
    arena.close();
  });
}

TEST_P(CommConformance, FindsTheFirstLineThatDiffers) {
  run_ranks([](Communicator& communicator) {
    std::vector<std::string> lines{"gather layer0", "reduce layer0", "barrier"};
    require_equal_sequences(communicator, lines);
    const int last = communicator.size() - 1;
    if (last == 0) return;
    if (communicator.rank() == last) lines[1] = "reduce layer1";
    try {
      require_equal_sequences(communicator, lines);
      ADD_FAILURE() << "a difference went unnoticed";
    } catch (const InternalError& error) {
      EXPECT_EQ(
          std::string(error.what()),
          "the ranks disagree on line 1 of what they will run: rank 0 has 'reduce layer0', rank " +
              std::to_string(last) +
              " has 'reduce layer1'; were all ranks given the same configuration and files?");
    }
    lines[1] = "reduce layer0";
    if (communicator.rank() == 0) lines.pop_back();
    try {
      require_equal_sequences(communicator, lines);
      ADD_FAILURE() << "a missing line went unnoticed";
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("rank 1 has 'barrier'"), std::string::npos)
          << error.what();
    }
  });
}

}  // namespace
}  // namespace strata::comm
