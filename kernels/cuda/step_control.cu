// Implements kernels/ops/gradient_scale.h, add_loss.h, step_control.h and early_control.h on CUDA.
// Each computes only a few numbers, on the device so that no result has to travel to the host, with
// the functions that the CPU uses.
#include "kernels/ops/step_control.h"

#include <cmath>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device.cuh"
#include "kernels/ops/add_loss.h"
#include "kernels/ops/advance_step.h"
#include "kernels/ops/gradient_scale.h"

namespace strata::cuda {
namespace {

using kernels::AgreedWord;
using kernels::GradientScale;
using kernels::StepControl;
using kernels::StepMetrics;
using kernels::StepRules;
using kernels::StepState;

struct ScaleArguments {
  const StepState* state;
  const std::int64_t* targets;
  GradientScale* scale;
  std::int64_t leaves;
};

struct Scale {
  static constexpr int kThreads = kWarp;
  static STRATA_DEVICE void run(const ScaleArguments& x) {
    if (thread() == 0) *x.scale = kernels::gradient_scale_of(*x.state, *x.targets, x.leaves);
  }
};

struct LossArguments {
  const std::int64_t* in;
  const double* loss;
  std::int64_t* word;
  std::int64_t leaves;
};

/// One thread per number of the word. Loss and both counts of non-finite numbers have a single
/// thread, since `in` and `word` may be the same memory.
struct AddLoss {
  static constexpr int kThreads = 96;
  static STRATA_DEVICE void run(const LossArguments& x) {
    const int i = thread();
    if (i >= AgreedWord::kWords) return;
    if (i == AgreedWord::kNonFiniteLoss || i == AgreedWord::kNonFinite) return;
    std::int64_t value = x.in[i];
    if (i == AgreedWord::kLoss) {
      const std::int64_t fault = kernels::add_loss_units(value, *x.loss, x.leaves) ? 0 : 1;
      for (const int count : {AgreedWord::kNonFiniteLoss, AgreedWord::kNonFinite})
        x.word[count] = x.in[count] + fault;
    }
    x.word[i] = value;
  }
};

struct StepArguments {
  StepRules rules;
  const StepState* state_in;
  const std::int64_t* word;
  StepState* state;
  StepControl* control;
  StepMetrics* metrics;
};

struct Step {
  static constexpr int kThreads = kWarp;
  static STRATA_DEVICE void run(const StepArguments& x) {
    if (thread() != 0) return;
    StepState state = *x.state_in;
    StepControl control;
    StepMetrics metrics;
    kernels::advance_step(
        x.rules, std::span<const std::int64_t, AgreedWord::kWords>(x.word, AgreedWord::kWords),
        state, control, metrics);
    *x.state = state;
    *x.control = control;
    *x.metrics = metrics;
  }
};

struct EarlyArguments {
  StepRules rules;
  const StepState* state;
  StepControl* control;
};

struct Early {
  static constexpr int kThreads = kWarp;
  static STRATA_DEVICE void run(const EarlyArguments& x) {
    if (thread() == 0) *x.control = kernels::control_ahead(x.rules, *x.state);
  }
};

}  // namespace

void gradient_scale(kernels::Stream& stream, const kernels::KernelCall& call) {
  launch<Scale>(stream, {},
                ScaleArguments{reinterpret_cast<const StepState*>(call.inputs[0].data),
                               call.inputs[1].row<const std::int64_t>(),
                               reinterpret_cast<GradientScale*>(call.outputs[0].data),
                               call.attributes.integer("leaves", 1)});
}

void add_loss(kernels::Stream& stream, const kernels::KernelCall& call) {
  launch<AddLoss>(
      stream, {},
      LossArguments{call.inputs[0].row<const std::int64_t>(), call.inputs[1].row<const double>(),
                    call.outputs[0].row<std::int64_t>(), call.attributes.integer("leaves", 1)});
}

void step_control(kernels::Stream& stream, const kernels::KernelCall& call) {
  launch<Step>(stream, {},
               StepArguments{StepRules::from(call.attributes),
                             reinterpret_cast<const StepState*>(call.inputs[0].data),
                             call.inputs[1].row<const std::int64_t>(),
                             reinterpret_cast<StepState*>(call.outputs[0].data),
                             reinterpret_cast<StepControl*>(call.outputs[1].data),
                             reinterpret_cast<StepMetrics*>(call.outputs[2].data)});
}

void early_control(kernels::Stream& stream, const kernels::KernelCall& call) {
  launch<Early>(stream, {},
                EarlyArguments{StepRules::from(call.attributes),
                               reinterpret_cast<const StepState*>(call.inputs[0].data),
                               reinterpret_cast<StepControl*>(call.outputs[0].data)});
}

}  // namespace strata::cuda
