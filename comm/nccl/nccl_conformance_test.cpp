// Tests of the communicator over a stand-in for NCCL, with kernels on the simulated device.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/testing/conformance.h"
#include "comm/testing/fake_nccl.h"
#include "comm/testing/test_arena.h"
#include "comm/testing/test_watch.h"
#include "core/error.h"
#include "core/testing/test_directory.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"

namespace strata::comm {
namespace {

/// A rank's NcclCommunicator that does its work on a simulated stream, whichever it is given.
class OnSimulatedDevice final : public Communicator {
 public:
  OnSimulatedDevice(Communicator& host, const std::string& gpu,
                    Reduction reduction = Reduction::ordered)
      : nccl_(fake_nccl(), host,
              {.gpu = gpu,
               .word = reinterpret_cast<std::byte*>(&word_),
               .stream_of = [](kernels::Stream&) -> cudaStream_t { return nullptr; },
               .reduction = reduction}) {}

  [[nodiscard]] int rank() const override { return nccl_.rank(); }
  [[nodiscard]] int size() const override { return nccl_.size(); }
  [[nodiscard]] std::string_view backend() const override { return nccl_.backend(); }
  void register_arena(const ArenaRegion& region) override { nccl_.register_arena(region); }
  void unregister_arena(const std::byte* base) override { nccl_.unregister_arena(base); }
  [[nodiscard]] Exchange exchange() const override { return nccl_.exchange(); }
  void execute(kernels::Stream&, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override {
    nccl_.run(stream_, collective, input, output, workspace);
  }
  void check() override { nccl_.check(); }
  void abort(const std::string& reason, ExitCode code) noexcept override {
    nccl_.abort(reason, code);
  }
  void close() override { nccl_.close(); }
  bool all_have_recorded(bool mine) override { return nccl_.all_have_recorded(mine); }

 private:
  std::uint64_t word_ = 0;
  cuda::SimulatedStream stream_{cuda::ThreadOrder::backward};
  NcclCommunicator nccl_;
};

std::string gpu(int rank) { return "GPU " + std::to_string(rank); }

/// Runs `body` for each rank on a thread of its own, with the rank's host communicator.
void run_threads(int world, const RankBody& body) {
  auto hosts = make_thread_communicators(world);
  std::vector<std::thread> threads;
  for (auto& host : hosts)
    threads.emplace_back([&body, &host] {
      try {
        body(*host);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << host->rank() << ": " << error.what();
        host->abort(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

void run_ranks(int world, const RankBody& body) {
  run_threads(world, [&body](Communicator& host) {
    OnSimulatedDevice nccl(host, gpu(host.rank()));
    body(nccl);
    nccl.close();
    host.close();
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

std::vector<TestedBackend> backends() {
  std::vector<TestedBackend> result;
  for (const int world : {1, 2, 3, 4}) result.push_back({"nccl", world, run_ranks, true, true});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Nccl, CommConformance, testing::ValuesIn(backends()), backend_name);
// Collectives only enqueue here: errors appear in check.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommFailure);

TEST(NcclCommunicatorTest, NativeSumsAreSumsInAnotherOrder) {
  constexpr int kWorld = 3;
  constexpr std::int64_t kElements = 1000;
  for (const DType wire : {DType::f32, DType::bf16, DType::f16})
    run_threads(kWorld, [wire](Communicator& host) {
      OnSimulatedDevice nccl(host, gpu(host.rank()), Reduction::native);
      TestArena arena(nccl, 1 << 16);
      const Collective mean{.kind = CollectiveKind::reduce_scatter,
                            .wire_type = wire,
                            .partition = {{0, 100, 700, kElements}},
                            .scale = 1.0f / kWorld};
      auto* input = reinterpret_cast<float*>(arena.take(kElements * 4));
      const std::int64_t begin = mean.partition.begin(host.rank()),
                         mine = mean.partition.count(host.rank());
      auto* output = reinterpret_cast<float*>(arena.take(mine * 4));
      std::byte* workspace = arena.take(nccl.workspace_bytes(mean));
      const auto value = [](int rank, std::int64_t i) {
        return static_cast<float>((i * 37 + rank * 11) % 101) / 16.0f - 3.0f;
      };
      for (std::int64_t i = 0; i < kElements; ++i) input[i] = value(host.rank(), i);
      HostStream stream;
      nccl.run(stream, mean, reinterpret_cast<std::byte*>(input),
               reinterpret_cast<std::byte*>(output),
               {workspace, static_cast<std::size_t>(nccl.workspace_bytes(mean))});
      for (std::int64_t i = 0; i < mine; ++i) {
        float sum = 0;
        for (int rank = 0; rank < kWorld; ++rank) sum += value(rank, begin + i);
        EXPECT_NEAR(output[i], sum / kWorld, wire == DType::f32 ? 1e-6 : 0.05) << begin + i;
      }
      nccl.close();
      host.close();
    });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

TEST(NcclCommunicatorTest, RecordsOnAllRanksOrOnNone) {
  for (const int failing : {-1, 0, 2})
    run_ranks(3, [failing](Communicator& nccl) {
      EXPECT_EQ(nccl.all_have_recorded(nccl.rank() != failing), failing < 0);
    });
}

TEST(NcclCommunicatorTest, RefusesTwoRanksOnOneGpuOnAllRanks) {
  run_threads(3, [](Communicator& host) {
    EXPECT_EQ(message_of<InvalidArgument>(
                  [&] { OnSimulatedDevice nccl(host, host.rank() == 0 ? gpu(0) : gpu(7)); }),
              "NCCL needs a GPU for each rank, but ranks 1 and 2 share GPU 7; start fewer ranks, "
              "or let ranks communicate through the host");
    host.close();
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

TEST(NcclCommunicatorTest, ARankThatDoesNotComeEndsTheStartOfTheOthers) {
  run_threads(3, [](Communicator& host) {
    if (host.rank() == 2) {
      host.abort("no GPU");
      return;
    }
    EXPECT_EQ(message_of<PeerError>([&] { OnSimulatedDevice nccl(host, gpu(host.rank())); }),
              "rank 2: no GPU");
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

TEST(NcclCommunicatorTest, AnAbortEndsTheWaitsOfAllRanks) {
  run_threads(3, [](Communicator& host) {
    OnSimulatedDevice nccl(host, gpu(host.rank()));
    TestArena arena(nccl, 4096);
    if (host.rank() == 1) nccl.abort("disk full", ExitCode::io);
    std::byte* word = arena.take(8);
    for (int call = 0; call < 2; ++call)
      EXPECT_EQ(message_of<PeerError>([&] {
                  HostStream stream;
                  nccl.run(stream, integer_sum(1, 3), word, word, {});
                }),
                "rank 1: disk full");
    EXPECT_EQ(message_of<PeerError>([&] { nccl.check(); }), "rank 1: disk full");
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

// Fault 2.
TEST(NcclCommunicatorTest, ItsWaitsEndAtTheLaunchersWordToTheHost) {
  run_threads(2, [](Communicator& host) {
    OnSimulatedDevice nccl(host, gpu(host.rank()));
    TestWatch watch("host b is lost");
    host.set_watch(&watch);
    watch.order_stop();
    EXPECT_EQ(message_of<PeerError>([&] { nccl.check(); }), "mlaunch: host b is lost");
    nccl.abort("mlaunch: host b is lost", ExitCode::try_again);
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

TEST(NcclCommunicatorTest, AnErrorOfNcclNamesTheCollectiveAndReachesAllRanks) {
  run_threads(2, [](Communicator& host) {
    OnSimulatedDevice nccl(host, gpu(host.rank()));
    if (host.rank() == 1) {
      fake_nccl_failing_rank() = 1;
      EXPECT_EQ(message_of<PeerError>([&] { nccl.check(); }),
                "rank 1: a collective up to 'start' failed: remote process exited (details); "
                "NCCL_DEBUG=WARN tells more");
      fake_nccl_failing_rank() = -1;
      return;
    }
    std::string told = "no error";
    while (told == "no error") told = message_of<PeerError>([&] { nccl.check(); });
    EXPECT_EQ(told.rfind("rank 1: a collective up to 'start' failed", 0), 0U) << told;
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

}  // namespace
}  // namespace strata::comm
