// Code loaded at first use must be loaded before memory is measured, and must not change results.
#include "train/engine/warm_up.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "comm/testing/test_watch.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

constexpr std::size_t kMostKernels = 64;
constexpr std::int64_t kKernelBytes = 1 << 20;

/// Stands for the simulated kernels; each takes memory at its first run, as CUDA's do.
class LazyKernels final : public kernels::KernelTable {
 public:
  [[nodiscard]] kernels::Kernel find(std::string_view operation) const override {
    const kernels::Kernel real = cuda::cuda_kernels().find(operation);
    if (real == nullptr) return nullptr;
    const auto [place, added] = places().emplace(operation, places().size());
    kernels().at(place->second).first = real;
    return entries(std::make_index_sequence<kMostKernels>())[place->second];
  }
  /// Bytes of all kernels that have run.
  static std::int64_t loaded_bytes() {
    std::int64_t bytes = 0;
    for (const auto& [kernel, calls] : kernels()) bytes += calls > 0 ? kKernelBytes : 0;
    return bytes;
  }
  static void unload() {
    for (auto& [kernel, calls] : kernels()) calls = 0;
  }

 private:
  using Counted = std::pair<kernels::Kernel, int>;
  static std::map<std::string, std::size_t, std::less<>>& places() {
    static std::map<std::string, std::size_t, std::less<>> all;
    return all;
  }
  static std::array<Counted, kMostKernels>& kernels() {
    static std::array<Counted, kMostKernels> all;
    return all;
  }
  template <std::size_t kPlace>
  static void run(kernels::Stream& stream, const kernels::KernelCall& call) {
    ++kernels()[kPlace].second;
    kernels()[kPlace].first(stream, call);
  }
  template <std::size_t... kPlaces>
  static std::array<kernels::Kernel, kMostKernels> entries(std::index_sequence<kPlaces...>) {
    return {&run<kPlaces>...};
  }
};

class LazyDevice final : public cuda::SimulatedDevice {
 public:
  LazyDevice() : SimulatedDevice(cuda::ThreadOrder::forward, std::int64_t{1} << 32) {}
  [[nodiscard]] const kernels::KernelTable& kernels() const override { return kernels_; }
  [[nodiscard]] kernels::DeviceMemoryFacts memory() const override {
    kernels::DeviceMemoryFacts facts = SimulatedDevice::memory();
    facts.free_bytes -= LazyKernels::loaded_bytes();
    return facts;
  }

 private:
  LazyKernels kernels_;
};

train::FillBatch any_tokens() {
  return [](std::int64_t step, int micro_step, const train::MicroBatch& batch) {
    for (std::size_t i = 0; i < batch.tokens.size(); ++i)
      batch.tokens[i] = batch.targets[i] = static_cast<std::int32_t>((step + i * 7) % 60);
    for (std::size_t i = 0; i < batch.samples.size(); ++i)
      batch.samples[i] = static_cast<std::int64_t>(i) + micro_step;
  };
}

std::int64_t used(const kernels::Device& device) {
  return device.memory().total_bytes - device.memory().free_bytes;
}

TEST(WarmUp, StepsAndEvaluationLoadNothingMore) {
  for (const train::ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    TrainingCase training;
    training.model = model;
    training.model.layers = 2;
    training.options = tiny_options(1, 2, 3);
    training.options.dtype = training.options.communication_dtype = DType::bf16;
    training.make_device = [] { return std::make_unique<LazyDevice>(); };
    LazyKernels::unload();
    on_rank_threads(1, [&](comm::Communicator& communicator) {
      RankDevice device;
      train::EngineParts parts = engine_parts(training, communicator, device);
      const std::int64_t open = used(*device.device);
      train::warm_up(*device.device, *device.communicator, parts.programs);
      const std::int64_t loaded = used(*device.device);
      EXPECT_GT(loaded, open + 10 * kKernelBytes) << "nothing was loaded";
      const std::int64_t arena = parts.programs.arena_bytes(runtime::Tier::device);
      train::Engine engine(std::move(parts));
      for (int step = 0; step < 3; ++step) engine.train_step(step, any_tokens());
      engine.evaluate(1, any_tokens());
      EXPECT_EQ(used(*device.device), loaded + arena);
    });
  }
}

/// Notes which collectives run, and passes them on.
class Listening final : public comm::Communicator {
 public:
  explicit Listening(comm::Communicator& real) : real_(real) {}
  [[nodiscard]] int rank() const override { return real_.rank(); }
  [[nodiscard]] int size() const override { return real_.size(); }
  [[nodiscard]] std::string_view backend() const override { return real_.backend(); }
  void register_arena(const comm::ArenaRegion& region) override { real_.register_arena(region); }
  void unregister_arena(const std::byte* base) override { real_.unregister_arena(base); }
  [[nodiscard]] comm::Exchange exchange() const override { return real_.exchange(); }
  void execute(kernels::Stream& stream, const comm::Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override {
    const bool small = collective.partition.total() == size();
    (small ? smallest : others) += std::string(name_of(collective.kind)) + " ";
    real_.run(stream, collective, input, output, workspace);
  }
  void abort(const std::string& reason, ExitCode code) noexcept override {
    real_.abort(reason, code);
  }
  void close() override { real_.close(); }
  std::string smallest, others;

 private:
  comm::Communicator& real_;
};

TEST(WarmUp, EachKindOfCollectiveRunsOnOneElementAndLarge) {
  constexpr int kWorld = 2;
  TrainingCase training;
  training.model = tiny_gpt2();
  training.world = kWorld;
  training.options = tiny_options(kWorld, 2, 3);
  training.options.zero.stage = 3;
  training.options.zero.param_persistence_threshold_elements = 0;
  training.make_device = [] {
    return std::make_unique<cuda::SimulatedDevice>(cuda::ThreadOrder::forward);
  };
  on_rank_threads(kWorld, [&](comm::Communicator& communicator) {
    RankDevice device;
    const train::EngineParts parts = engine_parts(training, communicator, device);
    Listening listening(*device.communicator);
    comm::TestWatch watch;
    listening.set_watch(&watch);
    int beats = 0;
    train::warm_up(*device.device, listening, parts.programs, Beat([&beats] { ++beats; }));
    EXPECT_GT(beats, 10);
    EXPECT_NE(
        std::ranges::find_if(
            watch.heard, [](const std::string& one) { return one.ends_with(" connect ranks"); }),
        watch.heard.end());
    for (const char* kind : {"all_gather ", "reduce_scatter ", "all_reduce "}) {
      EXPECT_NE(listening.smallest.find(kind), std::string::npos) << listening.smallest;
      EXPECT_NE(listening.others.find(kind), std::string::npos) << listening.others;
    }
    device.communicator->close();
  });
}

TEST(WarmUp, LeavesNoTraceInTheResult) {
  TrainingCase training;
  training.model = tiny_llama();
  training.options = tiny_options(1, 2, 3);
  training.make_device = [] {
    return std::make_unique<cuda::SimulatedDevice>(cuda::ThreadOrder::forward);
  };
  std::vector<std::string> losses;
  for (const bool warm : {false, true})
    on_rank_threads(1, [&](comm::Communicator& communicator) {
      RankDevice device;
      train::EngineParts parts = engine_parts(training, communicator, device);
      if (warm) train::warm_up(*device.device, *device.communicator, parts.programs);
      train::Engine engine(std::move(parts));
      std::string loss;
      for (int step = 0; step < 3; ++step)
        loss += std::to_string(engine.train_step(step, any_tokens()).loss) + " ";
      losses.push_back(loss);
    });
  EXPECT_EQ(losses[0], losses[1]);
}

}  // namespace
}  // namespace strata::tests
