// Tests whole steps in which one pass named the wrong version, or a later pass lost an instruction.
// Waits are placed anew each time, so that only the versions are wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "comm/factory.h"
#include "runtime/passes/autodiff.h"
#include "runtime/passes/recompute.h"
#include "runtime/passes/saved_values.h"
#include "runtime/program/lower.h"
#include "runtime/program/verifier.h"
#include "runtime/program/waits.h"
#include "runtime/testing/small_model.h"
#include "step/step.h"
#include "zero/policy.h"

namespace strata::step {
namespace {

using runtime::Instruction;
using runtime::Operand;
using runtime::Program;
using runtime::ValueId;

constexpr int kWorld = 2, kOwnPiece = 3;

struct Kind {
  int stage = 0;
  zero::MicroStepKind micro_step = zero::MicroStepKind::only;
  DType produced = DType::f32;
  bool recompute = false;
  runtime::Updates updates = runtime::Updates::step_end;
  DType accumulated = DType::f32;
  int rank = 1;
  bool reads_late = false;  ///< the last node of the backward pass reads layer.1.matrices
  int virtual_ranks = 0, micro_steps = 1;
};

/// Makes the Program of one of two ranks. Tiles, reductions and gathers are cut into several
/// pieces. Of a layer's matrices, the first pieces belong to rank 0 alone and those from kOwnPiece
/// on to rank 1; of the vectors rank 0 owns nothing.
Program step_program(const Kind& kind) {
  runtime::SmallModel model = runtime::small_model({.layers = 2, .hidden = 64, .width = 128});
  runtime::differentiate(model.graph, {kind.produced});
  if (kind.recompute) {
    runtime::SavedChoices choices(model.graph);
    for (int layer : {1, 2}) choices.recompute_blocks(layer, layer);
    runtime::recompute(model.graph, runtime::saved_actions(model.graph, choices.actions()));
  }
  for (std::size_t u = 0; kind.reads_late && u < model.graph.units.size(); ++u)
    if (model.graph.units[u].name == "layer.1.matrices")
      model.graph.apply("copy", {model.graph.unit_values[u]}, {}, 0, runtime::Pass::backward,
                        "late reader");
  StepSettings settings;
  settings.at = comm::point_of(comm::data_mesh(kWorld), kind.rank);
  settings.plan.updates = kind.updates;
  settings.plan.gradient = {kind.produced, DType::f32, kind.accumulated};
  settings.plan.mesh = comm::data_mesh(kWorld);
  settings.plan.virtual_ranks = kind.virtual_ranks;
  settings.plan.micro_steps = kind.micro_steps;
  settings.plan.units =
      zero::plan_units(model.graph.units, {kind.stage, 0, 0}, kWorld, kind.virtual_ranks);
  settings.plan.limits.tile_elements = 2048;
  settings.plan.limits.reduce_bucket_elements = 4096;
  settings.plan.limits.gather_bucket_elements = 3072;
  const auto communicators = comm::make_thread_communicators(kWorld);
  runtime::PersistentLayout layout;
  declare_state(layout, model.graph.units, settings);
  runtime::Graph graph =
      lower_micro_step(std::move(model.graph), {model.loss}, settings, kind.micro_step);
  layout.add_all(graph);
  return lower(
      std::move(graph), layout,
      {"step", {}, comm::MeshSeat::of(communicators[static_cast<std::size_t>(kind.rank)]->seat())});
}

/// Returns the index of the instruction with this label, after `count` earlier ones.
std::size_t find(const Program& program, const std::string& label, int count = 0) {
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].label == label && count-- == 0) return i;
  throw std::runtime_error("no instruction " + label + " in\n" + program.to_string());
}

/// Returns the verifier's first problem after waits are placed for the order of the list.
std::string problem(Program program) {
  for (Instruction& in : program.instructions) in.border_waits = 0;
  place_waits(program);
  const auto problems = runtime::verify(program);
  return problems.empty() ? "" : problems.front();
}

Program without(Program program, std::size_t index) {
  program.instructions.erase(program.instructions.begin() + static_cast<std::ptrdiff_t>(index));
  return program;
}

/// Moves the instruction at `from` to the end of the list.
Program moved_back(Program program, std::size_t from) {
  std::rotate(program.instructions.begin() + static_cast<std::ptrdiff_t>(from),
              program.instructions.begin() + static_cast<std::ptrdiff_t>(from) + 1,
              program.instructions.end());
  return program;
}

/// Makes `operand` name the version before, as if its pass had kept the older id.
void name_older(Program& program, Operand& operand) {
  runtime::Value older = program.values[static_cast<std::size_t>(operand.value)];
  if (older.root == runtime::kNoValue) older.root = operand.value;
  --older.version;
  program.values.push_back(older);
  operand.value = static_cast<ValueId>(program.values.size()) - 1;
}

void expect_says(const std::string& found, const std::string& words) {
  EXPECT_NE(found.find(words), std::string::npos) << "expected: " << words << "\nfound: " << found;
}

class StepVersions : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] int stage() const { return GetParam(); }
};

TEST_P(StepVersions, EveryProgramOfAStepHolds) {
  for (const zero::MicroStepKind micro_step :
       {zero::MicroStepKind::only, zero::MicroStepKind::first, zero::MicroStepKind::middle,
        zero::MicroStepKind::last})
    for (const DType produced : {DType::f32, DType::bf16})
      for (const bool recompute : {false, true})
        EXPECT_EQ(problem(step_program({stage(), micro_step, produced, recompute})), "")
            << name_of(micro_step) << " " << name_of(produced) << " " << recompute;
}

TEST_P(StepVersions, EveryProgramWithPartialSumsHolds) {
  runtime::Plan plan;
  plan.mesh = comm::data_mesh(kWorld);
  plan.virtual_ranks = 8 * kWorld;
  plan.units.resize(1);
  plan.units[0].shard_gradient = stage() >= 2;
  for (plan.micro_steps = 1; plan.micro_steps <= 3; plan.micro_steps += 2)
    for (const zero::MicroStep& micro_step : zero::micro_steps(plan))
      for (const DType accumulated : {DType::f32, DType::bf16})
        for (const runtime::Updates updates :
             {runtime::Updates::step_end, runtime::Updates::next_step, runtime::Updates::gradient})
          for (const int rank : {0, 1}) {
            Kind kind{stage(), micro_step.kind, DType::bf16, false, updates, accumulated, rank};
            kind.virtual_ranks = plan.virtual_ranks;
            kind.micro_steps = plan.micro_steps;
            EXPECT_EQ(problem(step_program(kind)), "")
                << name_of(micro_step.kind) << " " << name_of(accumulated) << " "
                << name_of(updates) << " rank " << rank;
          }
}

constexpr runtime::Updates kEarly = runtime::Updates::gradient;

/// Traces and messages name instructions by their labels.
TEST_P(StepVersions, EveryInstructionHasALabel) {
  for (const runtime::Updates updates : {runtime::Updates::step_end, kEarly})
    for (const zero::MicroStepKind micro_step :
         {zero::MicroStepKind::only, zero::MicroStepKind::last}) {
      const Program program = step_program({stage(), micro_step, DType::bf16, false, updates});
      for (std::size_t i = 0; i < program.instructions.size(); ++i)
        EXPECT_NE(program.instructions[i].label, "")
            << i << " of " << name_of(micro_step) << " " << name_of(updates);
    }
}

TEST_P(StepVersions, ProgramsHoldWithUpdatesBehindTheirGradients) {
  for (const zero::MicroStepKind micro_step :
       {zero::MicroStepKind::only, zero::MicroStepKind::first, zero::MicroStepKind::middle,
        zero::MicroStepKind::last})
    for (const DType produced : {DType::f32, DType::bf16})
      for (const DType accumulated : {DType::f32, produced})
        for (const bool recompute : {false, true}) {
          std::vector<std::vector<std::string>> sequences;
          for (const int rank : {0, 1}) {
            const Program program =
                step_program({stage(), micro_step, produced, recompute, kEarly, accumulated, rank});
            EXPECT_EQ(problem(program), "") << name_of(micro_step) << " " << name_of(produced)
                                            << " " << name_of(accumulated) << " " << recompute;
            sequences.push_back(program.collective_sequence());
          }
          EXPECT_EQ(sequences[0], sequences[1]) << name_of(micro_step) << " " << name_of(produced);
        }
}

/// An early update waits for the last writer of its gradient and the last reader of its parameters,
/// and for nothing else.
struct Ready {
  int update = -1;  ///< the unit's first update
  int node = -1;    ///< the node that it waits for
};

Ready ready_of(const Program& program, const std::string& unit) {
  const auto root = [&](const Operand& o) {
    const runtime::Value& value = program.values[static_cast<std::size_t>(o.value)];
    return value.root == runtime::kNoValue ? o.value : value.root;
  };
  Ready ready;
  ready.update = static_cast<int>(find(program, "update " + unit));
  const Instruction& update = program.instructions[static_cast<std::size_t>(ready.update)];
  const ValueId parameter = root(update.inputs[0]), gradient = root(update.inputs[3]);
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& in = program.instructions[static_cast<std::size_t>(i)];
    if (in.label == update.label) continue;
    for (const Operand& o : in.inputs)
      if (root(o) == parameter && program.values[static_cast<std::size_t>(o.value)].version == 0)
        ready.node = i;
    for (const Operand& o : in.outputs)
      if (root(o) == gradient) ready.node = i;
  }
  return ready;
}

bool computes_backward(const Instruction& in) {
  return in.pass == runtime::Pass::backward && in.queue == runtime::Queue::compute &&
         !in.label.starts_with("norm ");
}

TEST_P(StepVersions, UpdatesStandRightBehindTheirGradients) {
  for (const bool recompute : {false, true}) {
    const Program program =
        step_program({stage(), zero::MicroStepKind::only, DType::f32, recompute, kEarly});
    const auto backward_between = [&](int begin, int end) {
      return std::count_if(program.instructions.begin() + begin, program.instructions.begin() + end,
                           computes_backward);
    };
    for (const char* unit : {"embedding.matrices", "layer.0.matrices", "layer.0.vectors",
                             "layer.1.matrices", "head.vectors"}) {
      const Ready ready = ready_of(program, unit);
      ASSERT_GT(ready.update, ready.node) << unit;
      EXPECT_EQ(backward_between(ready.node + 1, ready.update), 0) << unit;
      const auto left =
          backward_between(ready.update, static_cast<int>(program.instructions.size()));
      EXPECT_EQ(left == 0, unit == std::string("embedding.matrices")) << unit;
    }
  }
}

TEST_P(StepVersions, UpdatesWaitForTheLastReaderOfTheirParameters) {
  Kind kind{stage(), zero::MicroStepKind::only, DType::f32, false, kEarly};
  kind.reads_late = true;
  const Program program = step_program(kind);
  EXPECT_EQ(problem(program), "");
  const Ready ready = ready_of(program, "layer.1.matrices");
  EXPECT_GT(ready.update, ready.node);
  // The gather alone has to come before the update at stage 3.
  const auto reader = static_cast<int>(find(program, "late reader"));
  EXPECT_EQ(ready.update > reader, stage() < 3);
}

TEST_P(StepVersions, AnUpdateBeforeAReaderOfItsParametersIsRefused) {
  Program program = step_program({stage(), zero::MicroStepKind::only, DType::f32, false, kEarly});
  const auto update = program.instructions.begin() + ready_of(program, "layer.1.matrices").update;
  const Operand mine = update->inputs[0];
  const auto reads_mine = [&](const Operand& o) {
    return o.tier == mine.tier && o.offset_bytes < mine.offset_bytes + mine.bytes &&
           mine.offset_bytes < o.offset_bytes + o.bytes;
  };
  Instruction late;
  for (auto in = program.instructions.begin(); in != update; ++in)
    if (std::ranges::any_of(in->inputs, reads_mine)) late = *in;
  ASSERT_NE(late.operation, nullptr);
  late.label = "late";
  late.outputs.clear();
  std::erase_if(late.inputs, [&](const Operand& o) { return !reads_mine(o); });
  program.instructions.insert(update + 1, late);
  expect_says(problem(program), "'late' reads version 0 of 'layer.1.");
}

TEST_P(StepVersions, AReaderOfParametersBehindTheUpdateIsRefused) {
  if (stage() == 3) return;  // it would read a gathered copy: the next test
  const Program program = step_program({stage()});
  const std::string said = problem(moved_back(program, find(program, "layer.0.0.norm")));
  expect_says(said, "'layer.0.1.linear' reads 'layer.0.0.norm'");  // its own reader comes first
  Program reads_late = program;
  Instruction copy = program.instructions[find(program, "layer.0.0.norm")];
  copy.label = "late";
  copy.inputs = {copy.inputs[1]};
  copy.outputs.clear();
  reads_late.instructions.push_back(copy);
  expect_says(problem(reads_late), "'late' reads version 0 of 'layer.0.norm.weight' at byte ");
}

TEST_P(StepVersions, AGatherBehindTheUpdateIsRefused) {
  if (stage() != 3) return;
  const Program program = step_program({stage()});
  Program late = program;
  Instruction gather = program.instructions[find(program, "gather layer.1.matrices", kOwnPiece)];
  gather.label = "late";
  late.instructions.push_back(gather);
  expect_says(problem(late), "'late' reads version 0 of 'layer.1.matrices.own' at byte ");
}

TEST_P(StepVersions, AMissingTileIsRefused) {
  const Program program = step_program({stage()});
  int tiles = 0;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (program.instructions[i].label != "update layer.0.matrices") continue;
    ++tiles;
    const std::string said = problem(without(program, i));
    if (stage() == 1 || stage() == 2) {
      expect_says(said, "'publish layer.0.matrices' reads version 1 of 'layer.0.matrices.own'");
    } else {
      expect_says(said, "ends with version");
      expect_says(said, "layer.0.matrices'");
    }
  }
  EXPECT_GT(tiles, 2);
}

TEST_P(StepVersions, AMissingPieceOfACollectiveIsRefused) {
  const Program program = step_program({stage()});
  const auto said = [&](const std::string& label) {
    return problem(without(program, find(program, label, kOwnPiece)));
  };
  const std::string reduced = said("reduce layer.0.matrices");
  expect_says(reduced, stage() == 0 ? "'gather gradient layer.0.matrices' reads version"
                                    : "'norm layer.0.matrices' reads version");
  if (stage() == 0)
    expect_says(said("gather gradient layer.0.matrices"), "'norm layer.0.matrices' reads version");
  if (stage() == 1 || stage() == 2)
    expect_says(said("publish layer.0.matrices"), "'parameter/layer.0.matrices' ends with version");
  if (stage() == 3) expect_says(said("gather layer.0.matrices"), "that nobody wrote");
}

TEST_P(StepVersions, AnOldVersionNamedByAPassIsRefused) {
  const Program program = step_program({stage()});
  const auto said = [&](const std::string& label, std::size_t input, int piece = 0) {
    Program broken = program;
    name_older(broken, broken.instructions[find(broken, label, piece)].inputs[input]);
    return problem(broken);
  };
  expect_says(said("norm layer.1.vectors", 0), "reads version");  // the agreed word
  expect_says(said("norm layer.1.vectors", 0), "of 'agreed_word' at byte");
  expect_says(said("agree on norm and flags", 0), "of 'agreed_word' at byte");
  expect_says(said("step_control", 1), "of 'agreed_word' at byte");
  expect_says(said("norm layer.1.vectors", 1), "of 'own gradient' at byte");
  expect_says(said("update layer.1.vectors", 3), "of 'layer.1.vectors.gradient' at byte");
  expect_says(said("update layer.1.vectors", 4), "of 'step_control' at byte");
  if (stage() == 1 || stage() == 2)
    expect_says(said("publish layer.1.matrices", 0, kOwnPiece),
                "of 'layer.1.matrices.own' at byte");
  Program broken = program;
  name_older(broken, *broken.instructions[find(broken, "update head.vectors")].predicate);
  expect_says(problem(broken), "'update head.vectors' reads version 0 of 'step_control' at byte");
}

TEST_P(StepVersions, AnAccumulationThatIsMissingIsRefused) {
  const Program program = step_program({stage(), zero::MicroStepKind::last});
  const std::size_t accumulate = find(program, "accumulate gradient layer.0.matrices");
  expect_says(problem(without(program, accumulate)), "reads version 1 of '");
}

INSTANTIATE_TEST_SUITE_P(Stages, StepVersions, testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace strata::step
