// Training on simulated devices of several played hosts, over the stand-in for NCCL.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "comm/testing/simulated_nccl.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

/// A case of four ranks, each with a device that NCCL sees.
TrainingCase four_devices() {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.layers = 2;
  training.world = 4;
  training.options = tiny_options(training.world, 4, 2);
  training.make_device = [] {
    return std::make_unique<cuda::SimulatedDevice>(cuda::ThreadOrder::forward);
  };
  training.connect_device = [](comm::Communicator& host, kernels::Device& device) {
    return std::make_unique<comm::SimulatedNccl>(host, "GPU " + std::to_string(host.rank()),
                                                 comm::Reduction::ordered, &device);
  };
  return training;
}

TEST(DeviceHosts, EndOnOneHostsDigest) {
  using FirstRanks = std::vector<int>;
  for (const int stage : {1, 3}) {
    TrainingCase training = four_devices();
    training.options.dtype = training.options.communication_dtype =
        stage == 1 ? DType::f32 : DType::bf16;
    training.options.zero.stage = stage;
    const TrainingResult expected = run_training(training);
    for (const FirstRanks& first_ranks : {FirstRanks{0, 2}, {0, 3}, {0, 1, 2, 3}}) {
      training.first_ranks = first_ranks;
      expect_same(expected, run_training(training),
                  "stage " + std::to_string(stage) + ", second host from rank " +
                      std::to_string(first_ranks[1]));
    }
  }
}

}  // namespace
}  // namespace strata::tests
