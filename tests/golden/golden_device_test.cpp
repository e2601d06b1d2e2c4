// Golden values from the CUDA kernels: whole training steps of every family, on the simulated
// device or on a GPU.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "tests/golden/golden_checks.h"
#include "tests/golden/golden_device.h"

namespace strata::tests {

namespace {

/// Bounds between bf16 on the device and on the CPU: both round every activation and gradient to 8
/// bits, but sums add in other orders, so a few of them differ by a unit.
constexpr double kBf16Loss = 1e-3, kBf16Gradients = 2e-2;
/// Bounds gradients where cuDNN computes attention: on an H200 the smallest ones, of key biases and
/// key norms, were up to 2.8e-2 off.
constexpr double kBf16GradientsOfCudnn = 3e-2;

class GoldenDevice : public testing::TestWithParam<GoldenCase> {
 protected:
  /// Makes a run of one step on the batch of the golden gradients.
  [[nodiscard]] GoldenRun one_step() const {
    GoldenRun run;
    run.model = GetParam().directory;
    run.batches = {one_batch(values_)};
    return run;
  }
  [[nodiscard]] static GoldenRun on_device(GoldenRun run, GoldenOrder order) {
    run.make_device = [=] { return golden_device(order); };
    return run;
  }

  const train::ModelFiles values_{GetParam().values};
};

TEST_P(GoldenDevice, LossAndGradientsInEveryOrderOfThreads) {
  const Tensors golden = without_key_bias(read_tensors(values_, "grad."));
  const double loss = read_doubles(values_, "loss").at(0), norm = norm_of(golden);
  const GoldenResult result = run_golden(on_device(one_step(), GoldenOrder::forward));
  EXPECT_NEAR(result.losses.at(0), loss, loss * kGoldenTolerance);
  EXPECT_NEAR(result.evaluation, loss, loss * kGoldenTolerance);
  EXPECT_NEAR(result.gradient_norms.at(0), norm, norm * kGoldenTolerance);
  EXPECT_TRUE(agree(without_key_bias(result.gradients), golden, kGoldenTolerance));

  const GoldenResult again = run_golden(on_device(one_step(), GoldenOrder::shuffled));
  EXPECT_EQ(again.losses, result.losses);
  EXPECT_EQ(again.evaluation, result.evaluation);
  EXPECT_TRUE(same_bytes(again.gradients, result.gradients));
  EXPECT_TRUE(same_bytes(again.parameters, result.parameters));
}

class TrainedOnDevice : public GoldenDevice {};

TEST_P(TrainedOnDevice, ThirtyStepsOfAdamW) {
  GoldenRun run = one_step();
  run.batches = training_batches(values_);
  run.steps = kGoldenSteps;
  expect_trained(run_golden(on_device(run, GoldenOrder::backward)),
                 read_doubles(values_, "adamw.losses"),
                 without_key_bias(read_tensors(values_, "final.")), kTrainedTolerance);
}

TEST_P(GoldenDevice, FollowsTheCpuInBf16) {
  GoldenRun run = one_step();
  run.dtype = DType::bf16;
  const GoldenResult device = run_golden(on_device(run, GoldenOrder::forward));
  const GoldenResult cpu = run_golden(run);
  EXPECT_NEAR(device.losses.at(0), cpu.losses.at(0), kBf16Loss * cpu.losses.at(0));
  EXPECT_NEAR(device.evaluation, cpu.evaluation, kBf16Loss * cpu.evaluation);
  const bool cudnn = golden_device(GoldenOrder::forward)->capabilities().cudnn;
  EXPECT_TRUE(agree(without_key_bias(device.gradients), without_key_bias(cpu.gradients),
                    cudnn ? kBf16GradientsOfCudnn : kBf16Gradients));
  EXPECT_FALSE(same_bytes(cpu.gradients, run_golden(one_step()).gradients)) << "bf16 was not used";
}

TEST(GoldenDeviceMasks, TheMeanIsOverTheTargetsOfTheWholeStep) {
  auto [run, losses, parameters] = masked_run();
  run.make_device = [] { return golden_device(GoldenOrder::forward); };
  for (const int world : {1, 2}) {
    SCOPED_TRACE(world);
    run.world = world;
    run.stage = world == 1 ? 0 : 3;
    run.accumulation = 4 / world;
    expect_trained(run_golden(run), losses, parameters, kGoldenTolerance);
  }
}

/// Returns one directory per file of golden values, only those in `names` if there are any.
std::vector<GoldenCase> families(const std::set<std::string>& names = {}) {
  std::vector<GoldenCase> cases = golden_cases();
  std::erase_if(cases, [&](const GoldenCase& c) {
    return !c.values.starts_with(c.directory) || (!names.empty() && !names.contains(c.name));
  });
  return cases;
}

std::string name_of_case(const testing::TestParamInfo<GoldenCase>& given) {
  std::string name = given.param.name;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenDevice, testing::ValuesIn(families()), name_of_case);
// The two families have every operation between them.
INSTANTIATE_TEST_SUITE_P(Models, TrainedOnDevice, testing::ValuesIn(families({"gpt2", "qwen3"})),
                         name_of_case);

}  // namespace
}  // namespace strata::tests
