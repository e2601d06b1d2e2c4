// The training of a small model, for tests of the search.
#pragma once

#include "compile/model.h"
#include "runtime/testing/small_model.h"

namespace strata::plan {

/// Makes a runtime::small_model of `layers`, fp32, trained by AdamW. Saving takes no memory beyond
/// what the Plan says.
inline compile::TrainingModel small_training(int layers = 4) {
  compile::TrainingModel model;
  model.build = [layers](const runtime::BatchShape& shape, compile::ModelUse) {
    runtime::SmallModel small = runtime::small_model(
        {.layers = layers, .width = 256, .batch = shape.batch, .sequence = shape.sequence});
    return compile::BuiltModel{std::move(small.graph), small.loss};
  };
  model.layers = layers;
  model.with_layers = [](int others) { return small_training(others); };
  model.save_rooms = [](const auto&, const auto&) { return compile::SaveRooms{}; };
  return model;
}

/// Makes what choices do not decide: `ranks`, sequences of 16 tokens.
inline runtime::Plan small_frame(int ranks) {
  runtime::Plan plan;
  plan.mesh = comm::data_mesh(ranks);
  plan.shape.sequence = 16;
  plan.limits.tile_elements = 2048;
  return plan;
}

/// A GPU that computes so fast that its link, host and disk matter for a small model.
inline machine::Machine small_gpu() {
  kernels::DeviceCapabilities capabilities;
  capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  machine::Machine machine = machine::typical_machine(capabilities);
  machine.device.fp32_flops = machine::assumed(2e11);
  machine.instruction_seconds = machine::assumed(1e-7);
  return machine;
}

}  // namespace strata::plan
