// What a device's instructions are rehearsed on, and what is left of it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/engine/rehearse.h"
#include "train/engine/state_digest.h"

namespace strata::tests {
namespace {

/// Counts the elements of parameters whenever a Program starts: those as large as numbers that
/// rehearsals work on, and others.
class SeesNumbers final : public runtime::Observer {
 public:
  explicit SeesNumbers(const train::Engine& engine) : engine_(engine) {}
  void starting(const runtime::Program&, std::int64_t) override {
    for (const runtime::PersistentValue& value : engine_.programs().persistent.values()) {
      if (value.role != runtime::Role::parameter || value.type.dtype != DType::f32) continue;
      std::vector<std::byte> buffer;
      const std::span<const std::byte> bytes = engine_.read(value.name, buffer);
      for (std::size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
        float number = 0;
        std::memcpy(&number, bytes.data() + at, sizeof number);
        const float size = std::abs(number);
        ++(size > 1.0F / 256 && size < 0.25F ? numbers : others);
      }
    }
  }
  void begin(const runtime::Program&, int) override {}
  void end(const runtime::Program&, int) override {}
  std::int64_t numbers = 0, others = 0;

 private:
  const train::Engine& engine_;
};

TEST(DeviceRehearsal, WorksOnNumbersAndLeavesNoneBehind) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(1, 4, 3);
  training.make_device = [] {
    return std::make_unique<cuda::SimulatedDevice>(cuda::ThreadOrder::forward);
  };
  on_rank_threads(1, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    const std::string before = train::describe_state(engine);
    const machine::Machine machine = machine::cpu_machine(1);
    const std::vector<runtime::Rehearsal> list = train::list_rehearsals(
        engine.programs(), machine, {.repeats = 3, .seconds = 3, .least_ns = 0});
    ASSERT_FALSE(list.empty());
    SeesNumbers seen(engine);
    for (const runtime::Rehearsal& rehearsal : list) engine.rehearse(rehearsal, seen);
    EXPECT_GT(seen.numbers, 1000);
    EXPECT_EQ(seen.others, 0);
    EXPECT_EQ(train::describe_state(engine), before);
  });
}

}  // namespace
}  // namespace strata::tests
