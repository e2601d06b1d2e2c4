#include "kernels/step_control.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/operand_check.h"
#include "kernels/wide_sum.h"

namespace strata::kernels {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TensorType bytes_of(std::size_t size) { return {DType::u8, {static_cast<std::int64_t>(size)}}; }

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("step_control", inputs);
  check.count(2, 2);
  check.type(0, "state", bytes_of(sizeof(StepState)));
  check.type(1, "word", {DType::i64, {AgreedWord::kWords}});
  return {bytes_of(sizeof(StepState)), bytes_of(sizeof(StepControl)),
          bytes_of(sizeof(StepMetrics))};
}

/// DeepSpeed's DynamicLossScaler.update_scale.
void update_scale(const StepRules& rules, bool overflow, StepState& state) {
  if (overflow) {
    if (rules.hysteresis == 1 || state.hysteresis == 1) {
      if (state.loss_scale <= rules.min_loss_scale) state.at_floor = 1;
      state.loss_scale = std::max(state.loss_scale / 2, rules.min_loss_scale);
    } else {
      --state.hysteresis;
    }
    state.last_overflow = state.scale_step;
  } else {
    if (rules.consecutive_hysteresis) state.hysteresis = rules.hysteresis;
    const std::int64_t clean = state.scale_step - state.last_overflow - 1;
    if (clean > 0 && clean % rules.loss_scale_window == 0) {
      if (!rules.consecutive_hysteresis) state.hysteresis = rules.hysteresis;
      state.loss_scale *= 2;
    }
  }
  ++state.scale_step;
}

double clip_factor(double norm, double clip) {
  if (clip <= 0) return 1;
  const double c = (norm + 1e-6) / clip;
  return c <= 1 ? 1 : c;  // NaN stays NaN
}

void apply_update(const StepRules& rules, double norm, double used_scale, StepState& state,
                  StepControl& control) {
  control.apply = 1;
  control.first_update = state.updates == 0 ? 1 : 0;
  control.gradient_factor = static_cast<float>(1 / (clip_factor(norm, rules.clip) * used_scale));
  ++state.updates;
  state.beta1_power *= rules.beta1;
  state.beta2_power *= rules.beta2;
  if (!rules.bias_correction) return;
  control.bias_correction1 = static_cast<float>(1 - state.beta1_power);
  control.bias_correction2_sqrt = static_cast<float>(std::sqrt(1 - state.beta2_power));
}

std::int64_t raised_flags(std::span<const std::int64_t, AgreedWord::kWords> word) {
  std::int64_t flags = 0;
  for (int i = 0; i < AgreedWord::kFlags; ++i)
    if (word[static_cast<std::size_t>(AgreedWord::kFirstFlag + i)] != 0)
      flags |= std::int64_t{1} << i;
  return flags;
}

}  // namespace

void advance_step(const StepRules& rules, std::span<const std::int64_t, AgreedWord::kWords> word,
                  StepState& state, StepControl& control, StepMetrics& metrics) {
  const double used_scale = state.loss_scale;
  const bool finite = word[AgreedWord::kNonFinite] == 0;
  const bool skip = !finite && (rules.scale_mode == ScaleMode::dynamic || rules.skip_nonfinite);
  const double norm =
      finite ? std::sqrt(wide_value(word.first<AgreedWord::kDigits>())) / used_scale : kNaN;
  const double rate = learning_rate(rules.schedule, state.updates);

  const std::int64_t step = state.updates + state.skipped;

  control = StepControl{};
  control.slot[step % 2] = 1;
  control.learning_rate = static_cast<float>(rate);
  if (skip)
    ++state.skipped;
  else
    apply_update(rules, norm, used_scale, state, control);
  if (rules.scale_mode == ScaleMode::dynamic) update_scale(rules, skip, state);

  metrics = StepMetrics{};
  metrics.step = step;
  metrics.loss = word[AgreedWord::kNonFiniteLoss] != 0
                     ? kNaN
                     : std::ldexp(static_cast<double>(word[AgreedWord::kLoss]), -40) /
                           static_cast<double>(rules.world);
  metrics.gradient_norm = norm;
  metrics.learning_rate = rate;
  metrics.loss_scale = used_scale;
  metrics.updates = state.updates;
  metrics.skipped = state.skipped;
  metrics.overflow = skip ? 1 : 0;
  metrics.flags = raised_flags(word);
  metrics.at_floor = state.at_floor;
}

Attributes StepRules::to_attributes() const {
  Attributes attributes{{"world", static_cast<double>(world)},
                        {"clip", clip},
                        {"scale_mode", static_cast<double>(scale_mode)},
                        {"loss_scale_window", static_cast<double>(loss_scale_window)},
                        {"hysteresis", static_cast<double>(hysteresis)},
                        {"consecutive_hysteresis", consecutive_hysteresis ? 1.0 : 0.0},
                        {"min_loss_scale", min_loss_scale},
                        {"skip_nonfinite", skip_nonfinite ? 1.0 : 0.0},
                        {"beta1", beta1},
                        {"beta2", beta2},
                        {"bias_correction", bias_correction ? 1.0 : 0.0}};
  set_schedule(attributes, schedule);
  return attributes;
}

StepRules StepRules::from(const Attributes& attributes) {
  StepRules rules;
  rules.world = attributes.integer("world", rules.world);
  rules.clip = attributes.real("clip", rules.clip);
  rules.scale_mode = static_cast<ScaleMode>(attributes.integer("scale_mode", 0));
  rules.loss_scale_window = attributes.integer("loss_scale_window", rules.loss_scale_window);
  rules.hysteresis = attributes.integer("hysteresis", rules.hysteresis);
  rules.consecutive_hysteresis = attributes.integer("consecutive_hysteresis", 0) != 0;
  rules.min_loss_scale = attributes.real("min_loss_scale", rules.min_loss_scale);
  rules.skip_nonfinite = attributes.integer("skip_nonfinite", 0) != 0;
  rules.beta1 = attributes.real("beta1", rules.beta1);
  rules.beta2 = attributes.real("beta2", rules.beta2);
  rules.bias_correction = attributes.integer("bias_correction", 1) != 0;
  rules.schedule = schedule_from(attributes);
  return rules;
}

const Operation& step_control_operation() {
  static const Operation operation{
      .name = "step_control", .infer = infer, .cost = memory_cost, .aliases = {{0, 0}}};
  return operation;
}

}  // namespace strata::kernels
