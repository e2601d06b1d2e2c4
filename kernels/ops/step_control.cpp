#include "kernels/ops/step_control.h"

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

TensorType bytes_of(std::size_t size) { return {DType::u8, {static_cast<std::int64_t>(size)}}; }

Types infer(TypeSpan inputs, const Attributes&) {
  const OperandCheck check("step_control", inputs);
  check.count(2, 2);
  check.type(0, "state", bytes_of(sizeof(StepState)));
  check.type(1, "word", {DType::i64, {AgreedWord::kWords}});
  return {bytes_of(sizeof(StepState)), bytes_of(sizeof(StepControl)),
          bytes_of(sizeof(StepMetrics))};
}

}  // namespace

Attributes StepRules::to_attributes() const {
  Attributes attributes{{"leaves", static_cast<double>(leaves)},
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
  rules.leaves = attributes.integer("leaves", rules.leaves);
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
