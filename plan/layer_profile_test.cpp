#include "plan/layer_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/choices.h"
#include "plan/testing/small_training.h"
#include "runtime/passes/autodiff.h"
#include "runtime/passes/saved_values.h"

namespace strata::plan {
namespace {

using runtime::SavedAction;

struct Profiled {
  compile::StepPrograms programs;
  std::vector<LayerProfile> rows;

  [[nodiscard]] const LayerProfile& of(const std::string& block) const {
    return *std::ranges::find(rows, block, &LayerProfile::block);
  }
  template <typename Field>
  [[nodiscard]] auto sum(const Field& field) const {
    return std::accumulate(rows.begin(), rows.end(), decltype(field(rows.front())){},
                           [&](auto sum, const LayerProfile& row) { return sum + field(row); });
  }
};

const compile::TrainingModel& model() {
  static const compile::TrainingModel kModel = small_training(4);
  return kModel;
}

Profiled profile(const Choices& choices, int ranks = 1) {
  const machine::Machine machine = machine::cpu_machine(2);
  const auto where = comm::MeshSeat::of(
      {0, ranks, ranks > 1 ? comm::Exchange::peer_memory : comm::Exchange::none});
  compile::Compiled compiled = compile::compile(
      model(), with_choices(small_frame(ranks), choices, model().build), machine, where);
  Profiled result{std::move(compiled.programs), {}};
  result.rows = profile_layers(model(), machine, where, result.programs);
  return result;
}

TEST(LayerProfile, CountsAllStateThatIsKept) {
  for (const int stage : {0, 3}) {
    Choices choices;
    choices.sharding.stage = stage;
    const Profiled of = profile(choices, 2);
    std::int64_t parameters = 0, gradients = 0, optimizer = 0;
    for (const runtime::PersistentValue& value : of.programs.persistent.values()) {
      if (value.role == runtime::Role::parameter) parameters += value.type.span_bytes();
      if (value.role == runtime::Role::gradient) gradients += value.type.span_bytes();
      if (value.role == runtime::Role::optimizer) optimizer += value.type.span_bytes();
    }
    EXPECT_EQ(of.sum([](const LayerProfile& row) { return row.parameter_bytes; }), parameters);
    EXPECT_EQ(of.sum([](const LayerProfile& row) { return row.gradient_bytes; }), gradients);
    EXPECT_EQ(of.sum([](const LayerProfile& row) { return row.optimizer_bytes; }), optimizer);
    EXPECT_GT(of.of("layer.0").optimizer_bytes, 0);
  }
}

TEST(LayerProfile, CountsEveryInstructionOfAStepOnce) {
  Choices choices;
  choices.micro_steps = 3;  // first, middle, last
  const Profiled of = profile(choices);
  double flops = 0, foreseen_ns = 0;  // serial Programs: one instruction after another
  for (const auto& [key, program] : of.programs.programs) {
    if (!key.is_train()) continue;
    const int runs = zero::runs_per_step(of.programs.settings.plan, key.micro_step);
    foreseen_ns += static_cast<double>(program.foreseen_ns) * runs;
    for (const runtime::Instruction& in : program.instructions) flops += in.demand.flops * runs;
  }
  EXPECT_DOUBLE_EQ(of.sum([](const LayerProfile& row) { return row.flops; }), flops);
  const double seconds = of.sum([](const LayerProfile& row) {
    return row.forward_seconds + row.backward_seconds + row.update_seconds + row.moving_seconds;
  });
  EXPECT_NEAR(seconds, 1e-9 * foreseen_ns, 1e-3 * seconds);
}

TEST(LayerProfile, TellsWhatBecomesOfSavedValues) {
  const Profiled kept = profile({});
  const LayerProfile& layer = kept.of("layer.1");
  EXPECT_GT(layer.saved(SavedAction::keep), 0);
  EXPECT_EQ(layer.saved(SavedAction::recompute), 0);
  EXPECT_EQ(layer.recompute_seconds, 0);
  EXPECT_EQ(layer.freed_bytes_per_ms(), 0);
  EXPECT_GT(layer.recomputable_bytes, 0);
  EXPECT_LE(layer.recomputable_bytes, layer.saved(SavedAction::keep));

  Choices choices;
  choices.again = Again::everything;
  const LayerProfile& again = profile(choices).of("layer.1");
  EXPECT_EQ(again.saved(SavedAction::recompute), layer.recomputable_bytes);
  EXPECT_EQ(again.saved(SavedAction::keep) + again.saved(SavedAction::recompute),
            layer.saved(SavedAction::keep));
  EXPECT_GT(again.recompute_seconds, 0);
  EXPECT_NEAR(again.recompute_seconds, layer.recomputable_seconds, 1e-9);
  EXPECT_NEAR(again.backward_seconds, layer.backward_seconds + again.recompute_seconds, 1e-9);
  EXPECT_GT(again.freed_bytes_per_ms(), 0);

  choices.again = Again::nothing;
  choices.activations = Home::host;
  const LayerProfile away = profile(choices).of("layer.1");
  EXPECT_EQ(away.saved(SavedAction::keep) + away.saved(SavedAction::host),
            layer.saved(SavedAction::keep));
}

}  // namespace
}  // namespace strata::plan
