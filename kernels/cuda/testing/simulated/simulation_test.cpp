// Tests that the simulation computes as a device does, and that it catches broken rules.
#include "kernels/cuda/testing/simulated/simulation.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "kernels/math/float16.h"

namespace strata::cuda {
namespace {

constexpr ThreadOrder kOrders[] = {ThreadOrder::forward, ThreadOrder::backward,
                                   ThreadOrder::shuffled};

struct Numbers {
  const float* in;
  float* out;
  int count;
};

/// Computes out[block], the sum of the block's part, through shuffles and shared memory.
struct BlockSum {
  static constexpr int kThreads = 128;
  static STRATA_DEVICE void run(const Numbers& a) {
    float sum = 0;
    for (int i = thread(); i < a.count; i += kThreads)
      sum += a.in[static_cast<int>(block().x) * a.count + i];
    for (int mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    auto* partial = reinterpret_cast<float*>(shared_memory());
    if (lane() == 0) partial[warp()] = sum;
    sync_block();
    if (thread() != 0) return;
    for (int w = 1; w < kThreads / kWarp; ++w) sum += partial[w];
    a.out[block().x] = sum;
  }
};

TEST(Simulation, BlocksReduceThroughShufflesAndSharedMemory) {
  std::vector<float> in(3 * 300), out(3);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 7);
  for (ThreadOrder order : kOrders) {
    SimulatedStream stream(order);
    launch<BlockSum>(stream, {{3, 1, 1}, 16}, Numbers{in.data(), out.data(), 300});
    for (int b = 0; b < 3; ++b) {
      float expected = 0;
      for (int i = 0; i < 300; ++i) expected += in[static_cast<std::size_t>(b * 300 + i)];
      EXPECT_EQ(out[static_cast<std::size_t>(b)], expected);
    }
    EXPECT_EQ(stream.shared_bytes(), 16);
  }
}

/// A kernel that lacks the barrier between writing and reading shared memory.
struct Forgotten {
  static constexpr int kThreads = 64;
  static STRATA_DEVICE void run(const Numbers& a) {
    auto* shared = reinterpret_cast<float*>(shared_memory());
    shared[thread()] = a.in[thread()];
    a.out[thread()] = shared[kThreads - 1 - thread()];
  }
};

TEST(Simulation, AMissingBarrierShowsInTheOrders) {
  std::vector<float> in(64, 1.0f), forward(64), backward(64);
  SimulatedStream up(ThreadOrder::forward), down(ThreadOrder::backward);
  launch<Forgotten>(up, {{1, 1, 1}, 256}, Numbers{in.data(), forward.data(), 64});
  launch<Forgotten>(down, {{1, 1, 1}, 256}, Numbers{in.data(), backward.data(), 64});
  EXPECT_TRUE(std::isnan(forward[0]));  // shared memory is NaN before it is written
  EXPECT_TRUE(std::isnan(backward[63]));
  EXPECT_EQ(forward[63], 1.0f);
}

struct Halves {
  const std::uint16_t* a;  // [16, 16]
  const std::uint16_t* b;  // [16, 8]
  float* d;                // [16, 8]
  bool bf16;
};

/// Computes one 16x8x16 product. Operands come by cp.async and ldmatrix, as in a real kernel.
struct Product {
  static constexpr int kThreads = 32;
  static STRATA_DEVICE void run(const Halves& h) {
    auto* a = reinterpret_cast<std::uint16_t*>(shared_memory());
    auto* b = a + 256;
    copy_async16(a + thread() * 8, h.a + thread() * 8);
    if (thread() < 16) copy_async16(b + thread() * 8, h.b + thread() * 8);
    copy_async_commit();
    copy_async_wait<0>();
    sync_block();
    std::uint32_t af[4], bf[4];
    // Matrices 0 to 3 of A are rows 0-7 and 8-15 of columns 0-7, then those of columns 8-15.
    load_matrix4(af, a + (lane() % 16) * 16 + lane() / 16 * 8);
    // B has a row per k, so its fragments are those of the transposed matrices: k 0-7, then 8-15.
    load_matrix4_transposed(bf, b + (lane() % 16) * 8);
    const std::uint32_t b2[2] = {bf[0], bf[1]};
    float d[4] = {0, 0, 0, 0};
    if (h.bf16)
      mma_bf16(d, af, b2);
    else
      mma_f16(d, af, b2);
    const int row = lane() / 4, column = lane() % 4 * 2;
    h.d[row * 8 + column] = d[0];
    h.d[row * 8 + column + 1] = d[1];
    h.d[(row + 8) * 8 + column] = d[2];
    h.d[(row + 8) * 8 + column + 1] = d[3];
  }
};

TEST(Simulation, MatrixFragmentsFollowThePtxTables) {
  for (bool bf16 : {true, false}) {
    alignas(16) std::array<std::uint16_t, 256> a{};
    alignas(16) std::array<std::uint16_t, 128> b{};
    const auto round = [&](float x) {
      return bf16 ? kernels::f32_to_bf16(x) : kernels::f32_to_f16(x);
    };
    const auto wide = [&](std::uint16_t x) {
      return bf16 ? kernels::bf16_to_f32(x) : kernels::f16_to_f32(x);
    };
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = round(static_cast<float>(i * 37 % 19) - 9);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = round(static_cast<float>(i * 23 % 17) - 8);
    for (ThreadOrder order : kOrders) {
      std::array<float, 128> d{};
      SimulatedStream stream(order);
      launch<Product>(stream, {{1, 1, 1}, 768}, Halves{a.data(), b.data(), d.data(), bf16});
      for (std::size_t r = 0; r < 16; ++r)
        for (std::size_t c = 0; c < 8; ++c) {
          float expected = 0;
          for (std::size_t k = 0; k < 16; ++k) expected += wide(a[r * 16 + k]) * wide(b[k * 8 + c]);
          EXPECT_EQ(d[r * 8 + c], expected) << r << ", " << c;
        }
    }
  }
}

struct ReadsTooEarly {
  static constexpr int kThreads = 32;
  static STRATA_DEVICE void run(const Numbers& a) {
    auto* shared = reinterpret_cast<float*>(shared_memory());
    copy_async16(shared + thread() * 4, a.in + thread() * 4);
    copy_async_commit();
    a.out[thread()] = shared[thread() * 4];
    copy_async_wait<0>();
  }
};

TEST(Simulation, AsynchronousCopiesArriveWhenWaitedFor) {
  alignas(16) std::array<float, 128> in{};
  std::array<float, 32> out{};
  SimulatedStream stream(ThreadOrder::forward);
  launch<ReadsTooEarly>(stream, {{1, 1, 1}, 512}, Numbers{in.data(), out.data(), 0});
  EXPECT_TRUE(std::isnan(out[0]));
}

struct Diverges {
  static constexpr int kThreads = 64;
  static STRATA_DEVICE void run(const Numbers& a) {
    if (a.count == 0 && thread() == 3) return;
    if (a.count == 1 && lane() == 3) sync_warp();
    if (a.count == 2) load<4>(a.in + 1);
    if (a.count == 3 && thread() == 0) copy_async16(shared_memory(), a.in);
    if (a.count == 1) shuffle_xor(1, 1);
    sync_block();
  }
};

TEST(SimulationDeathTest, BrokenRulesEndTheProcess) {
  alignas(16) std::array<float, 16> in{};
  const auto run = [&](int rule) {
    SimulatedStream stream(ThreadOrder::forward);
    launch<Diverges>(stream, {{1, 1, 1}, 64}, Numbers{in.data(), nullptr, rule});
  };
  EXPECT_DEATH(run(0), "63 threads wait at sync_block");
  EXPECT_DEATH(run(1), "where another lane of its warp calls");
  EXPECT_DEATH(run(2), "not aligned");
  EXPECT_DEATH(run(3), "asynchronous copies");
}

}  // namespace
}  // namespace strata::cuda
