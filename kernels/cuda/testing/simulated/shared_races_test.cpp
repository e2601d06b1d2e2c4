// Tests that the simulation stops kernels with races in shared memory, and no others. It is
// compiled with the flags of simulated kernels.
#include "kernels/cuda/testing/simulated/shared_races.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/device.cuh"

namespace strata::cuda {
namespace {

struct Words {
  std::int32_t* out;
};

enum class Between : std::uint8_t { nothing, shuffle, ballot, sync_warp, sync_block };

template <Between kBetween>
STRATA_DEVICE void pass() {
  if (kBetween == Between::shuffle) shuffle_xor(1, 1);
  if (kBetween == Between::ballot) ballot(true);
  if (kBetween == Between::sync_warp) sync_warp();
  if (kBetween == Between::sync_block) sync_block();
}

/// Each thread writes a word, which the thread `kDistance` away reads.
template <Between kBetween, int kDistance>
struct Handover {
  static constexpr int kThreads = 64;
  static STRATA_DEVICE void run(const Words& a) {
    auto* shared = reinterpret_cast<std::int32_t*>(shared_memory());
    shared[thread()] = thread();
    pass<kBetween>();
    a.out[thread()] = shared[thread() ^ kDistance];
  }
};

/// Lanes add to one word in turn, as in the loop of a reduction.
template <Between kBetween>
struct TakeTurns {
  static constexpr int kThreads = 32;
  static STRATA_DEVICE void run(const Words& a) {
    auto* shared = reinterpret_cast<std::int32_t*>(shared_memory());
    if (thread() == 0) shared[0] = 0;
    sync_block();
    for (int turn = 0; turn < 4; ++turn) {
      if (lane() == turn) shared[0] += 1;
      pass<kBetween>();
    }
    sync_block();
    if (thread() == 0) a.out[0] = shared[0];
  }
};

/// A tile is written again while another warp may still read it.
template <Between kBetween>
struct ReusesTile {
  static constexpr int kThreads = 64;
  static STRATA_DEVICE void run(const Words& a) {
    auto* shared = reinterpret_cast<std::int32_t*>(shared_memory());
    shared[thread()] = thread();
    sync_block();
    const std::int32_t read = shared[kThreads - 1 - thread()];
    pass<kBetween>();
    shared[thread()] = read;
    sync_block();
    a.out[thread()] = shared[thread()];
  }
};

/// An asynchronous copy overwrites what the other warp reads.
template <Between kBetween>
struct CopiesOver {
  static constexpr int kThreads = 64;
  static STRATA_DEVICE void run(const Words& a) {
    auto* shared = reinterpret_cast<std::int32_t*>(shared_memory());
    shared[thread()] = thread();
    sync_block();
    a.out[thread()] = shared[kThreads - 1 - thread()];
    pass<kBetween>();
    if (thread() < 16) copy_async16(shared + thread() * 4, a.out + thread() * 4);
    copy_async_commit();
    copy_async_wait<0>();
  }
};

template <typename Kernel>
std::vector<std::int32_t> run(ThreadOrder order = ThreadOrder::forward) {
  alignas(16) static std::int32_t out[64];
  SimulatedStream stream(order);
  launch<Kernel>(stream, {{2, 1, 1}, 256}, Words{out});
  return {std::begin(out), std::end(out)};
}

constexpr const char* kWarpRace = "shared memory, which thread .* without sync_warp or sync_block";
constexpr const char* kBlockRace = "shared memory, which thread .* without sync_block";

TEST(SharedRacesDeathTest, NothingOrdersLanesButTheirBarriers) {
  EXPECT_DEATH((run<Handover<Between::nothing, 1>>()), kWarpRace);
  EXPECT_DEATH((run<Handover<Between::shuffle, 1>>()), kWarpRace);
  EXPECT_DEATH((run<Handover<Between::ballot, 1>>()), kWarpRace);
  EXPECT_DEATH(run<TakeTurns<Between::shuffle>>(), kWarpRace);
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward}) {
    EXPECT_EQ((run<Handover<Between::sync_warp, 1>>(order))[5], 4);
    EXPECT_EQ((run<Handover<Between::sync_block, 1>>(order))[5], 4);
    EXPECT_EQ(run<TakeTurns<Between::sync_warp>>(order)[0], 4);
  }
}

TEST(SharedRacesDeathTest, ABarrierOfAWarpOrdersNoOtherWarp) {
  EXPECT_DEATH((run<Handover<Between::sync_warp, 32>>()), kBlockRace);
  EXPECT_EQ((run<Handover<Between::sync_block, 32>>())[5], 37);
}

TEST(SharedRacesDeathTest, WritesWaitForReaders) {
  EXPECT_DEATH(run<ReusesTile<Between::nothing>>(), kBlockRace);
  EXPECT_DEATH(run<ReusesTile<Between::sync_warp>>(), kBlockRace);
  EXPECT_EQ(run<ReusesTile<Between::sync_block>>()[5], 58);
}

TEST(SharedRacesDeathTest, SoDoAsynchronousCopies) {
  EXPECT_DEATH(run<CopiesOver<Between::nothing>>(), "shared memory, which thread");
  EXPECT_EQ(run<CopiesOver<Between::sync_block>>()[5], 58);
}

}  // namespace
}  // namespace strata::cuda
