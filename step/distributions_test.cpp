// Checks on whole steps of two ranks that every operand is sharded, summed or replicated as its
// operation takes it, and that a missing collective is found.
#include <gtest/gtest.h>

#include <string>

#include "runtime/passes/autodiff.h"
#include "runtime/passes/infer_distributions.h"
#include "runtime/passes/layer_major.h"
#include "runtime/passes/recompute.h"
#include "runtime/passes/saved_values.h"
#include "runtime/testing/small_model.h"
#include "step/step.h"
#include "zero/policy.h"

namespace strata::step {
namespace {

using runtime::Graph;
using runtime::Updates;

const comm::Mesh kMesh = comm::data_mesh(2);

struct Kind {
  int stage = 0;
  zero::MicroStepKind micro_step = zero::MicroStepKind::only;
  Updates updates = Updates::step_end;
  DType produced = DType::f32;
  DType accumulated = DType::f32;
  int rank = 1;
  int virtual_ranks = 0, micro_steps = 1;
};

runtime::SmallModel model(DType produced = DType::f32) {
  runtime::SmallModel model =
      runtime::small_model({.layers = 2, .hidden = 64, .width = 128, .dropout = 0.1});
  runtime::differentiate(model.graph, {produced});
  runtime::SavedChoices choices(model.graph);
  choices.recompute_blocks(1, 1);
  runtime::recompute(model.graph, runtime::saved_actions(model.graph, choices.actions()));
  return model;
}

StepSettings settings_of(const Kind& kind, const Graph& graph) {
  StepSettings settings;
  settings.at = comm::point_of(kMesh, kind.rank);
  settings.plan.updates = kind.updates;
  settings.plan.gradient = {kind.produced, DType::f32, kind.accumulated};
  settings.plan.mesh = kMesh;
  settings.plan.virtual_ranks = kind.virtual_ranks;
  settings.plan.micro_steps = kind.micro_steps;
  settings.plan.units = zero::plan_units(graph.units, {kind.stage, 0, 0}, 2, kind.virtual_ranks);
  settings.plan.limits.tile_elements = 2048;
  settings.plan.limits.reduce_bucket_elements = 4096;
  settings.plan.limits.gather_bucket_elements = 3072;
  return settings;
}

Graph step(const Kind& kind) {
  runtime::SmallModel built = model(kind.produced);
  const StepSettings settings = settings_of(kind, built.graph);
  return lower_micro_step(std::move(built.graph), {built.loss}, settings, kind.micro_step);
}

std::string problem(Graph graph) { return infer_distributions(graph, kMesh); }

TEST(Distributions, OfEachStepFit) {
  for (int stage = 0; stage <= 3; ++stage)
    for (int rank : {0, 1})
      for (Updates updates : {Updates::step_end, Updates::next_step, Updates::gradient})
        for (DType accumulated : {DType::f32, DType::bf16}) {
          Kind kind{.stage = stage,
                    .updates = updates,
                    .produced = DType::bf16,
                    .accumulated = accumulated,
                    .rank = rank};
          EXPECT_EQ(problem(step(kind)), "") << stage;
          kind.micro_steps = 3;
          for (zero::MicroStepKind micro_step :
               {zero::MicroStepKind::first, zero::MicroStepKind::middle,
                zero::MicroStepKind::last}) {
            kind.micro_step = micro_step;
            EXPECT_EQ(problem(step(kind)), "") << stage << " " << name_of(micro_step);
          }
        }
}

TEST(Distributions, OfVirtualRanksFit) {
  for (int stage = 0; stage <= 3; ++stage)
    for (int count : {1, 2}) {
      Kind kind{.stage = stage, .virtual_ranks = 8, .micro_steps = count};
      const StepSettings settings = settings_of(kind, model().graph);
      for (const auto& [micro_step, batch] : zero::micro_steps(settings.plan)) {
        kind.micro_step = micro_step;
        EXPECT_EQ(problem(step(kind)), "") << stage << " " << name_of(micro_step);
      }
    }
}

TEST(Distributions, OfOtherProgramsFit) {
  for (int stage = 0; stage <= 3; ++stage) {
    const Kind kind{.stage = stage, .updates = Updates::next_step, .micro_steps = 2};
    runtime::SmallModel built = model();
    const StepSettings settings = settings_of(kind, built.graph);
    EXPECT_EQ(problem(lower_drain(built.graph, settings)), "");
    runtime::LayerMajorStep all = runtime::layer_major(built.graph, built.loss, 2, DType::f32);
    EXPECT_EQ(problem(lower_micro_step(std::move(all.graph), all.losses, settings,
                                       zero::MicroStepKind::only)),
              "");
    runtime::SmallModel forward = runtime::small_model();
    const StepSettings evaluation = settings_of(kind, forward.graph);
    EXPECT_EQ(problem(lower_evaluation(std::move(forward.graph), forward.loss, evaluation)), "");
  }
}

/// Returns the problem of a step in which all pieces of this collective are turned into copies.
std::string problem_without(const std::string& label, const Kind& kind) {
  Graph graph = step(kind);
  int found = 0;
  for (runtime::Node& node : graph.nodes)
    if (node.label == label) {
      node.operation = &kernels::find_operation("copy");
      node.collective.reset();
      ++found;
    }
  EXPECT_GT(found, 0) << label;
  return problem(std::move(graph));
}

TEST(Distributions, NameTheReaderOfWhatACollectiveWasToMake) {
  EXPECT_EQ(problem_without("agree on norm and flags", {}),
            "'step_control' (step_control) reads operand 1, 'agreed_word v9', as "
            "partial_sum(data) where it takes replicated(data)");
  EXPECT_EQ(problem_without("gather layer.1.matrices", {.stage = 3}),
            "'layer.1.1.linear' (linear) reads operand 1, 'layer.1.in.weight', as "
            "sharded(0, data) where it takes replicated(data)");
  for (int stage : {1, 2, 3})
    EXPECT_EQ(problem_without("reduce layer.1.matrices", {.stage = stage}),
              "'norm layer.1.matrices' (norm_squares) reads operand 1, 'own gradient" +
                  std::string(stage == 1 ? " v2" : " v1") +
                  "', as partial_sum(data) where it takes replicated(data)")
        << stage;
  EXPECT_EQ(problem_without("reduce layer.1.matrices", {}),
            "'gather gradient layer.1.matrices' (all_gather) reads operand 0, 'own sum v2', as "
            "partial_sum(data) where it takes sharded(0, data)");
  EXPECT_EQ(problem_without("gather gradient layer.1.matrices", {}),
            "'update layer.1.matrices' (adamw) reads operand 0, 'layer.1.matrices.parameter', as "
            "replicated(data) where it takes sharded(0, data)");
}

}  // namespace
}  // namespace strata::step
