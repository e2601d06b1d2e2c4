// Whole training on the simulated device against the CPU: CUDA kernels and the stream executor run
// the same Programs.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "core/error.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

using cuda::SimulatedDevice;
using cuda::ThreadOrder;

std::unique_ptr<kernels::Device> make_device() {
  return std::make_unique<SimulatedDevice>(ThreadOrder::forward);
}

TrainingCase gpt2_on_device(int world) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.layers = 2;
  training.model.embedding_dropout = training.model.residual_dropout =
      training.model.attention_dropout = 0.1;
  training.options = tiny_options(world, 4, 3);
  training.world = world;
  training.make_device = make_device;
  return training;
}

TrainingCase llama_on_device(int world) {
  TrainingCase training = gpt2_on_device(world);
  training.model = tiny_llama();
  training.model.layers = 2;
  return training;
}

/// Runs the same job on the CPU.
TrainingResult on_cpu(TrainingCase training) {
  training.make_device = nullptr;
  return run_training(training);
}

/// Returns the digests of rank 0's state before the first step.
std::string initial_state(const TrainingCase& training) {
  std::string state;
  on_rank_threads(training.world, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    train::initialize_weights(engine, training.options.seed);
    const std::string mine = train::describe_state(engine);
    if (communicator.rank() == 0) state = mine;
  });
  return state;
}

void expect_close(const TrainingResult& device, const TrainingResult& cpu, double bound,
                  const std::string& what) {
  ASSERT_EQ(device.metrics.size(), cpu.metrics.size()) << what;
  for (std::size_t i = 0; i < cpu.metrics.size(); ++i) {
    const double loss = cpu.metrics[i].loss, norm = cpu.metrics[i].gradient_norm;
    EXPECT_NEAR(device.metrics[i].loss, loss, bound * loss) << what << ", step " << i;
    EXPECT_NEAR(device.metrics[i].gradient_norm, norm, bound * norm) << what << ", step " << i;
  }
  EXPECT_NEAR(device.evaluation, cpu.evaluation, bound * cpu.evaluation) << what;
}

/// A device that counts the bytes copied by copy_now.
class CountingDevice final : public SimulatedDevice {
 public:
  explicit CountingDevice(std::atomic<std::int64_t>& bytes)
      : SimulatedDevice(ThreadOrder::forward), bytes_(bytes) {}
  void copy_now(void* to, const void* from, std::int64_t bytes) override {
    bytes_ += bytes;
    SimulatedDevice::copy_now(to, from, bytes);
  }

 private:
  std::atomic<std::int64_t>& bytes_;
};

TEST(DeviceTraining, BeginsWithTheWeightsOfTheCpu) {
  for (TrainingCase training : {gpt2_on_device(1), llama_on_device(2)})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const int stage : {0, 3}) {
        training.options.dtype = training.options.communication_dtype = dtype;
        training.options.zero.stage = stage;
        training.make_device = make_device;
        const std::string on_device = initial_state(training);
        training.make_device = nullptr;
        EXPECT_EQ(on_device, initial_state(training)) << name_of(dtype) << ", stage " << stage;
      }
}

TEST(DeviceTraining, MakesFirstWeightsWhereTheyLie) {
  TrainingCase training = gpt2_on_device(1);
  std::atomic<std::int64_t> copied = 0;
  training.make_device = [&] { return std::make_unique<CountingDevice>(copied); };
  on_rank_threads(1, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    const std::int64_t before = copied;
    train::initialize_weights(engine, 1);
    EXPECT_EQ(copied, before) << "bytes went between host and device";
    (void)train::describe_state(engine);
    EXPECT_GT(copied, before) << "nothing is counted";
  });
}

TEST(DeviceTraining, FollowsTheCpuInFp32) {
  for (const TrainingCase& training : {gpt2_on_device(1), llama_on_device(1)})
    expect_close(run_training(training), on_cpu(training), 1e-5,
                 training.model.tied_embeddings ? "gpt2" : "llama");
}

TEST(DeviceTraining, FollowsTheCpuIn16Bits) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    TrainingCase training = llama_on_device(1);
    training.options.dtype = training.options.communication_dtype = dtype;
    // Both round every activation, but sums round at different places: a few units of the format.
    expect_close(run_training(training), on_cpu(training), dtype == DType::bf16 ? 2e-2 : 4e-3,
                 std::string(name_of(dtype)));
  }
}

TEST(DeviceTraining, RoundsStochasticallyAsTheCpuDoes) {
  TrainingCase training = gpt2_on_device(2);
  training.options.dtype = training.options.communication_dtype =
      training.options.accumulation_dtype = DType::bf16;
  training.options.state_recipe = train::StateRecipe::bf16_sr;
  const TrainingResult expected = run_training(training);
  expect_close(expected, on_cpu(training), 2e-2, "bf16-sr");
  training.options.zero.stage = 3;
  expect_same(expected, run_training(training), "stage 3");
}

TEST(DeviceTraining, KeepsStateInEveryFormatAsTheCpuDoes) {
  using plan::Home;
  using train::StateRecipe;
  for (const StateRecipe recipe : {StateRecipe::packed_bf16_moments, StateRecipe::eight_bit}) {
    TrainingCase training = gpt2_on_device(2);
    training.options.dtype = training.options.communication_dtype = DType::bf16;
    training.options.state_recipe = recipe;
    training.options.steps = 2;
    EXPECT_EQ(initial_state(training), [training]() mutable {
      training.make_device = nullptr;
      return initial_state(training);
    }());
    const TrainingResult expected = run_training(training);
    const std::string what = "recipe " + std::to_string(static_cast<int>(recipe));
    expect_close(expected, on_cpu(training), 2e-2, what);
    // Now the host runs the updates.
    training.options.zero.stage = 3;
    training.options.tile_elements = 4096;
    training.options.offload.optimizer = Home::host;
    expect_same(expected, run_training(training), what + ", stage 3, on the host");
  }
}

/// State off the device: the host's queues run beside those of the device.
TEST(DeviceTraining, GivesTheSameBitsWhereverStateLives) {
  using plan::Home;
  for (const int world : {1, 2}) {
    TrainingCase training = gpt2_on_device(world);
    training.options.dtype = training.options.communication_dtype =
        world == 1 ? DType::f32 : DType::bf16;
    training.options.zero.stage = world == 1 ? 0 : 3;
    training.options.tile_elements = 4096;
    const TrainingResult expected = run_training(training);
    for (const Home optimizer : {Home::host, Home::disk})
      for (const Home others : {Home::device, Home::host}) {
        training.options.offload.optimizer = optimizer;
        training.options.offload.parameters = training.options.offload.activations = others;
        expect_same(expected, run_training(training),
                    "world " + std::to_string(world) +
                        (optimizer == Home::host ? ", host" : ", disk") +
                        (others == Home::host ? ", all" : ""));
      }
    training.options.offload = {};
    training.options.offload.parameters = Home::host;
    training.options.steps = 5;
    expect_same(run_training(training), run_training(training), "recorded uploads");
  }
}

/// Gradients on the disk are read by the host or brought back to the device.
TEST(DeviceTraining, GivesTheSameBitsWithGradientsOnTheDisk) {
  using plan::Home;
  for (const int world : {1, 2}) {
    TrainingCase training = gpt2_on_device(world);
    training.options.dtype = training.options.communication_dtype =
        world == 1 ? DType::f32 : DType::bf16;
    training.options.tile_elements = 4096;
    training.options.steps = 2;
    const TrainingResult expected = run_training(training);
    training.change_plan = put_gradients_on_disk;
    for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{1, 3})
      for (const Home optimizer : {Home::device, Home::disk}) {
        training.options.zero.stage = stage;
        training.options.offload.optimizer = optimizer;
        training.options.offload.parameters = stage == 1 ? Home::device : optimizer;
        expect_same(expected, run_training(training),
                    "world " + std::to_string(world) + ", stage " + std::to_string(stage) +
                        (optimizer == Home::device ? "" : ", all on the disk"));
      }
  }
}

TrainingCase without_clipping(TrainingCase training) {
  training.options.gradient_clipping = 0;
  training.options.tile_elements = 4096;
  training.options.steps = 2;
  return training;
}

/// Each update follows its own gradient, on the device, on the host, or between disk transfers.
TEST(DeviceTraining, GivesTheSameBitsWithUpdatesBehindTheirGradients) {
  using plan::Home;
  for (const int world : {1, 2}) {
    TrainingCase training = without_clipping(gpt2_on_device(world));
    const TrainingResult expected = run_training(training);
    training.options.offload.updates = train::UpdateTime::gradient;
    for (const Home target : {Home::device, Home::host, Home::disk}) {
      training.options.zero.stage = world == 1 ? 0 : target == Home::host ? 1 : 3;
      training.options.offload.optimizer = target;
      training.options.offload.parameters = target == Home::device ? target : Home::host;
      expect_same(expected, run_training(training),
                  "world " + std::to_string(world) + ", target " +
                      std::to_string(static_cast<int>(target)));
    }
  }
}

TEST(DeviceTraining, AgreesWithTheCpuOnTheControlOfEarlyUpdates) {
  TrainingCase training = without_clipping(llama_on_device(1));
  training.options.offload.updates = train::UpdateTime::gradient;
  runtime::LockstepReport report;
  training.lockstep = &report;
  run_training(training);
  EXPECT_NE(report.to_string().find("early_control"), std::string::npos) << report.to_string();
}

/// The scheduler places the host's updates and their transfers inside the backward pass, except
/// those of the embedding, whose gradient comes last.
TEST(DeviceTraining, UpdatesOfTheHostHideBehindTheBackwardPass) {
  TrainingCase training = without_clipping(llama_on_device(1));
  training.model.layers = 4;
  training.options.offload.optimizer = plan::Home::host;
  for (const bool early : {true, false}) {
    training.options.offload.updates =
        early ? train::UpdateTime::gradient : train::UpdateTime::step_end;
    on_rank_threads(1, [&](comm::Communicator& communicator) {
      RankDevice device;
      const train::EngineParts parts = engine_parts(training, communicator, device);
      const runtime::Program& program = parts.programs.train(zero::MicroStepKind::only);
      int updates = 0, inside = 0;  // all; before the backward pass ends
      for (const runtime::Instruction& in : program.instructions) {
        if (in.queue == runtime::Queue::host && in.label.starts_with("update ")) ++updates;
        if (in.queue == runtime::Queue::compute && in.pass == runtime::Pass::backward)
          inside = updates;
      }
      EXPECT_GT(updates, 8);
      if (early)
        EXPECT_GE(inside, updates / 2) << program.to_string();
      else
        EXPECT_EQ(inside, 0) << program.to_string();
    });
  }
}

TEST(DeviceTraining, GivesTheSameBitsWithAndWithoutRecordings) {
  TrainingCase training = gpt2_on_device(1);
  training.options.accumulation = 2;
  training.options.micro_batch = 2;
  training.options.steps = 4;
  const TrainingResult recorded = run_training(training);
  training.recordings = runtime::Recordings::off;
  expect_same(recorded, run_training(training), "plain");
  training.make_device = [] {
    return std::make_unique<SimulatedDevice>(ThreadOrder::backward, std::int64_t{1} << 30, 7);
  };
  expect_same(recorded, run_training(training), "threads backward, with delays");
}

TEST(DeviceTraining, GivesTheSameBitsAtEveryStageAndWithRecomputation) {
  for (const int world : {1, 2}) {
    TrainingCase training = gpt2_on_device(world);
    const TrainingResult expected = run_training(training);
    for (int stage = 1; stage <= 3; ++stage) {
      training.options.zero.stage = stage;
      expect_same(expected, run_training(training),
                  "world " + std::to_string(world) + ", stage " + std::to_string(stage));
    }
    training.options.activation_checkpointing = true;
    expect_same(expected, run_training(training), "recomputed");
  }
}

TEST(DeviceTraining, GivesTheSameBitsInEveryWorldOfVirtualRanks) {
  TrainingCase training = gpt2_on_device(4);
  training.options.dtype = training.options.communication_dtype = DType::bf16;
  training.options.zero.stage = 3;
  training.options.steps = 2;
  const TrainingResult expected = run_training(training);
  training.options.virtual_ranks = 4;
  for (training.world = 1; training.world <= 2; ++training.world)
    expect_same(expected, run_training(training), "world " + std::to_string(training.world));
}

TEST(DeviceTraining, AgreesWithTheCpuInstructionByInstruction) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (TrainingCase training : {gpt2_on_device(1), llama_on_device(1)}) {
      training.options.dtype = training.options.communication_dtype = dtype;
      training.options.steps = 2;
      runtime::LockstepReport report;
      training.lockstep = &report;
      const TrainingResult checked = run_training(training);
      EXPECT_GE(report.rows.size(), 15U) << report.to_string();
      training.lockstep = nullptr;
      expect_same(checked, run_training(training), "unchecked");
    }
}

TEST(DeviceTraining, UpdatesStateInEveryFormatAsTheCpuDoesInstructionByInstruction) {
  using train::StateRecipe;
  for (const StateRecipe recipe : {StateRecipe::packed_bf16_moments, StateRecipe::eight_bit}) {
    TrainingCase training = llama_on_device(1);
    training.options.dtype = training.options.communication_dtype = DType::bf16;
    training.options.state_recipe = recipe;
    training.options.steps = 2;
    runtime::LockstepReport report;
    training.lockstep = &report;
    run_training(training);
    const std::string operation = recipe == StateRecipe::eight_bit ? "adamw_8bit" : "adamw_packed";
    EXPECT_NE(report.to_string().find(operation), std::string::npos) << report.to_string();
  }
}

/// A device with one kernel that computes something else.
class BrokenDevice final : public SimulatedDevice {
 public:
  BrokenDevice() : SimulatedDevice(ThreadOrder::forward) {}
  [[nodiscard]] const kernels::KernelTable& kernels() const override { return table_; }

 private:
  class Table final : public kernels::KernelTable {
   public:
    [[nodiscard]] kernels::Kernel find(std::string_view operation) const override {
      return cuda::cuda_kernels().find(operation == "swiglu_backward" ? "fill_zero" : operation);
    }
  };
  Table table_;
};

TEST(DeviceTraining, TheCheckNamesTheFirstInstructionThatDiffers) {
  TrainingCase training = llama_on_device(1);
  runtime::LockstepReport report;
  training.lockstep = &report;
  training.make_device = [] { return std::make_unique<BrokenDevice>(); };
  try {
    run_training(training);
    ADD_FAILURE() << "not found";
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("(swiglu_backward)"), std::string::npos) << message;
    EXPECT_NE(message.find("0 on the device"), std::string::npos) << message;
    EXPECT_NE(message.find("layer.1"), std::string::npos) << message;  // first in the backward pass
  }
}

// Fault 23.
TEST(DeviceTraining, RefusesAnArenaThatTheDeviceLacks) {
  TrainingCase training = gpt2_on_device(1);
  training.make_device = [] {
    return std::make_unique<SimulatedDevice>(ThreadOrder::forward, 1000);
  };
  try {
    run_training(training);
    ADD_FAILURE() << "ran";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("device"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace strata::tests
