// Compiling is a function: equal arguments give equal Programs, and what does not fit is a value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "machine/hardware_table.h"
#include "plan/foresee.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

using compile::Compiled;
using compile::MemoryUser;
using runtime::Plan;
using runtime::Tier;
using testing::AllOf;
using testing::HasSubstr;

constexpr comm::Seat kSecondOfTwo{1, 2, comm::Exchange::peer_memory};

/// A run of two ranks whose optimizer state lives on the disk.
class Requested {
 public:
  Requested() {
    request_.model = tiny_gpt2();
    request_.options = tiny_options(2, 4, 1);
    request_.options.zero.stage = 3;
    request_.options.zero.param_persistence_threshold_elements = 100;
    request_.options.offload.optimizer = plan::Home::disk;
    request_.evaluate = true;
    request_.saving = runtime::SaveMemory::snapshot;
    model_ = train::training_model(request_);
  }
  [[nodiscard]] Plan plan(const machine::Machine& machine) const {
    return train::requested_plan(request_, model_, machine, 2);
  }
  [[nodiscard]] Compiled compiled(const Plan& plan, const machine::Machine& machine) const {
    return compile::compile(model_, plan, machine, comm::MeshSeat::of(kSecondOfTwo));
  }
  [[nodiscard]] Compiled compiled_step(const Plan& plan, const machine::Machine& machine) const {
    return compile::compile_step(model_, plan, machine, comm::MeshSeat::of(kSecondOfTwo));
  }
  [[nodiscard]] Compiled completed(compile::StepPrograms step,
                                   const machine::Machine& machine) const {
    return compile::compile_rest(model_, std::move(step), machine,
                                 comm::MeshSeat::of(kSecondOfTwo));
  }
  [[nodiscard]] std::string refusal(const Plan& plan, const machine::Machine& machine) const {
    try {
      (void)compiled(plan, machine);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  train::ProgramRequest request_;
  compile::TrainingModel model_;
};

/// All Programs and where their persistent storage lies.
std::string text_of(const compile::StepPrograms& set) {
  std::string text;
  for (const auto& [key, program] : set.programs)
    text += compile::name_of(key) + "\n" + program.to_string();
  for (const runtime::PersistentValue& value : set.persistent.values())
    text += value.name + " " + std::to_string(value.offset_bytes) + "\n";
  return text;
}

TEST(Compile, EqualArgumentsGiveEqualProgramsToTheByte) {
  const Requested requested;
  const machine::Machine cpu = machine::cpu_machine(2);
  const Plan plan = requested.plan(cpu);
  const Compiled first = requested.compiled(plan, cpu);
  ASSERT_TRUE(first.fit.fits()) << describe(first.fit);
  EXPECT_EQ(text_of(requested.compiled(plan, cpu).programs), text_of(first.programs));
  // A Plan that was printed and read back compiles to the same.
  const Plan read = Plan::from_json(plan.to_json(), "plan.json");
  EXPECT_EQ(text_of(requested.compiled(read, cpu).programs), text_of(first.programs));
  verify_all(first.programs);
}

TEST(Compile, MakesAProgramOfEachKindThatThePlanHas) {
  const Requested requested;
  const machine::Machine cpu = machine::cpu_machine(1);
  Plan plan = requested.plan(cpu);
  using compile::ProgramKind;
  plan.read_ahead_bytes = 1 << 20;
  const compile::StepPrograms all = requested.compiled(plan, cpu).programs;
  for (const ProgramKind kind : {ProgramKind::train, ProgramKind::drain, ProgramKind::read_ahead,
                                 ProgramKind::snapshot, ProgramKind::evaluate})
    EXPECT_NE(all.find(kind), nullptr) << name_of(kind);
  EXPECT_EQ(all.find(ProgramKind::generate), nullptr);
  plan.read_ahead_bytes = 0;
  plan.evaluates = false;
  plan.saving = runtime::SaveMemory::none;
  plan.updates = runtime::Updates::step_end;
  EXPECT_EQ(requested.compiled(plan, cpu).programs.programs.size(), 1u);
}

/// Returns the Program's collectives without its name, which begins each line.
std::vector<std::string> collectives_of(const runtime::Program& program) {
  std::vector<std::string> lines = program.collective_sequence();
  for (std::string& line : lines) line.erase(0, program.name.size());
  return lines;
}

TEST(Compile, MakesMicroStepsForShorterSequencesOverTheSameState) {
  const Requested requested;
  const machine::Machine cpu = machine::cpu_machine(1);
  Plan plan = requested.plan(cpu);
  plan.micro_steps = 2;
  plan.read_ahead_bytes = 1 << 20;
  const Compiled one = requested.compiled(plan, cpu);
  plan.shorter_sequences = {4, 8};
  const Compiled some = requested.compiled(plan, cpu);
  ASSERT_TRUE(some.fit.fits()) << describe(some.fit);
  verify_all(some.programs);
  EXPECT_EQ(some.programs.persistent.values(), one.programs.persistent.values());
  std::string names;
  for (const auto& [key, program] : some.programs.programs) {
    EXPECT_EQ(program.name, compile::name_of(key));
    names += program.name + " ";
    compile::ProgramKey whole = key;
    whole.shorter_sequence = 0;
    const runtime::Program& of_shape = one.programs.programs.at(whole);
    // Programs of the Plan's own shape are the same with and without shorter sequences.
    if (key == whole) {
      EXPECT_EQ(program.to_string(), of_shape.to_string());
    }
    EXPECT_EQ(collectives_of(program), collectives_of(of_shape)) << program.name;
  }
  EXPECT_EQ(names,
            "train.last train.last@4 train.last@8 train.first train.first@4 train.first@8 drain "
            "read_ahead train.snapshot train.snapshot@4 train.snapshot@8 evaluate evaluate@4 "
            "evaluate@8 ");
  EXPECT_EQ(plan::foresee(some.programs, cpu).step_seconds,
            plan::foresee(one.programs, cpu).step_seconds);
  EXPECT_EQ(some.programs.scheduled_ns(), one.programs.scheduled_ns());
}

TEST(Compile, TheProgramsOfAStepAndTheRestAreAll) {
  const Requested requested;
  const machine::Machine cpu = machine::cpu_machine(1);
  Plan plan = requested.plan(cpu);
  plan.read_ahead_bytes = 1 << 20;
  plan.shorter_sequences = {4};
  const Compiled all = requested.compiled(plan, cpu);
  Compiled step = requested.compiled_step(plan, cpu);
  using enum compile::ProgramKind;
  for (const auto& [key, program] : step.programs.programs)
    EXPECT_TRUE(key.is_train() || key.kind == drain || key.kind == read_ahead) << program.name;
  EXPECT_EQ(step.programs.programs.size(), 3u);
  EXPECT_EQ(plan::foresee(step.programs, cpu).step_seconds,
            plan::foresee(all.programs, cpu).step_seconds);
  const Compiled whole = requested.completed(std::move(step.programs), cpu);
  EXPECT_EQ(text_of(whole.programs), text_of(all.programs));
  EXPECT_EQ(whole.programs.settings.plan, plan);
}

TEST(Compile, RefusesShorterSequencesThatAreNone) {
  const Requested requested;
  const machine::Machine cpu = machine::cpu_machine(1);
  const auto refusal = [&](const std::vector<std::int64_t>& sequences) {
    Plan plan = requested.plan(cpu);
    plan.shorter_sequences = sequences;
    return requested.refusal(plan, cpu);
  };
  EXPECT_EQ(refusal({8, 4}),
            "the Plan's shorter_sequences: found 4 after 8, expected ascending lengths from 1, "
            "less than shape.sequence, 16");
  EXPECT_THAT(refusal({8, 8}), HasSubstr("shorter_sequences: found 8 after 8, "));
  EXPECT_THAT(refusal({0}), HasSubstr("shorter_sequences: found 0 after 0, "));
  EXPECT_THAT(refusal({8, 16}), HasSubstr("shorter_sequences: found 16 after 8, "));
}

TEST(Compile, WhatDoesNotFitIsAValueWithItsFloor) {
  const Requested requested;
  const machine::Machine cpu = machine::cpu_machine(1);
  Plan plan = requested.plan(cpu);
  const Compiled whole = requested.compiled(plan, cpu);
  EXPECT_EQ(whole.fit.tiers[0].needed_bytes, whole.programs.arena_bytes(Tier::device));
  EXPECT_EQ(describe(whole.fit), "");
  ASSERT_FALSE(whole.fit.largest.empty());
  EXPECT_GE(whole.fit.largest.front().bytes, whole.fit.largest.back().bytes);

  plan.budget_bytes[0] = 1000;
  const compile::Fit small = requested.compiled(plan, cpu).fit;
  EXPECT_FALSE(small.fits());
  ASSERT_TRUE(small.shortage);
  EXPECT_EQ(small.shortage->tier, Tier::device);
  EXPECT_EQ(small.shortage->budget_bytes, 1000);
  EXPECT_THAT(describe(small), AllOf(HasSubstr("out of memory in tier device"),
                                     HasSubstr(std::to_string(small.shortage->floor_bytes))));
  plan.budget_bytes[0] = small.shortage->floor_bytes - 1;
  EXPECT_FALSE(requested.compiled(plan, cpu).fit.fits());

  plan.budget_bytes[0] = runtime::kUnlimited;
  plan.host_bytes = 1000;
  const compile::Fit kept = requested.compiled(plan, cpu).fit;
  ASSERT_TRUE(kept.kept_too_much);
  EXPECT_EQ(kept.kept_too_much->budget_bytes, 1000);
  EXPECT_GT(kept.kept_too_much->saving_bytes, 0);
  EXPECT_THAT(describe(kept), HasSubstr("the Plan has 1000"));
}

TEST(Compile, RefusesAPlanForAnotherModelWorldOrMachine) {
  const Requested requested;
  const machine::Machine cpu = machine::cpu_machine(1);
  const machine::Machine gpu = machine::find_hardware("rtx4090").value();
  Plan plan = requested.plan(cpu);
  EXPECT_THAT(requested.refusal(plan, gpu), HasSubstr("for a CPU (backend)"));
  EXPECT_EQ(requested.refusal(requested.plan(gpu), gpu), "accepted");
  plan.mesh = comm::data_mesh(4);
  EXPECT_THAT(requested.refusal(plan, cpu), HasSubstr("for 4 ranks (mesh.data), and there are 2"));
  plan = requested.plan(cpu);
  plan.saved = {{0, 9, {}}};
  EXPECT_THAT(requested.refusal(plan, cpu), HasSubstr("names block 9, and the model has"));
  plan.saved = {{1, 1, {{"9.magic", runtime::SavedAction::recompute}}}};
  EXPECT_THAT(requested.refusal(plan, cpu),
              HasSubstr("names '9.magic', which block 'layer.0' does not save; it saves "));
  plan = requested.plan(cpu);
  plan.units.pop_back();
  EXPECT_THAT(requested.refusal(plan, cpu), HasSubstr("make a Plan for this model"));
}

TEST(FindPlan, FindsTheSamePlanOnAllRanks) {
  train::ProgramRequest request;
  request.model = tiny_gpt2();
  request.options = tiny_options(3, 6, 1);
  request.options.zero.stage = 3;
  request.options.zero.param_persistence_threshold_elements = 100;
  request.options.tile_elements = 1024;
  request.options.offload.optimizer = plan::Home::disk;
  request.local_ranks = 3;
  for (const std::int64_t host_bytes : {runtime::kUnlimited, std::int64_t{3} << 20}) {
    request.options.offload.host_memory_bytes = host_bytes;
    std::string first;
    for (int rank = 0; rank < 3; ++rank) {
      const compile::StepPrograms found = train::build_programs(
          request, {rank, 3, comm::Exchange::peer_memory}, machine::cpu_machine(1));
      verify_all(found);
      const std::string plan = found.settings.plan.to_json();
      if (rank == 0) first = plan;
      EXPECT_EQ(plan, first) << rank;
    }
  }
}

/// Returns where the first gradient waits in the Plan that ranks 0 and 2 of three both find.
Tier home_of_gradients(train::ProgramRequest request, std::int64_t host_bytes) {
  request.options.offload.host_memory_bytes = host_bytes;
  request.options.offload.device_memory_bytes = 1 << 30;  // not taken from host memory
  request.local_ranks = 3;
  std::string first;
  for (const int rank : {0, 2}) {
    const compile::StepPrograms found = train::build_programs(
        request, {rank, 3, comm::Exchange::peer_memory}, machine::cpu_machine(1));
    verify_all(found);
    const std::string plan = found.settings.plan.to_json();
    EXPECT_TRUE(first.empty() || plan == first) << plan;
    first = plan;
  }
  return Plan::from_json(first, "first").units.front().gradient_tier;
}

TEST(FindPlan, TakesGradientsToTheDiskOnlyWhereHostMemoryIsTooLittle) {
  using plan::Home;
  train::ProgramRequest request;
  request.model = tiny_gpt2();
  request.model.layers = 12;
  request.options = tiny_options(3, 6, 1);
  request.options.zero.stage = 3;
  request.options.tile_elements = 1024;
  request.options.offload.optimizer = Home::disk;
  for (const Home parameters : {Home::device, Home::disk}) {
    request.options.offload.parameters = parameters;
    EXPECT_EQ(home_of_gradients(request, runtime::kUnlimited), Tier::pinned);
    EXPECT_EQ(home_of_gradients(request, std::int64_t{16} << 20), Tier::pinned);
    // The gradients of all ranks take 627,000 bytes.
    EXPECT_EQ(home_of_gradients(request, 500'000), Tier::disk);
    EXPECT_THROW(home_of_gradients(request, 10'000), OutOfMemory);
  }
  // Gradients may not go to a drive where nothing else may.
  request.options.offload.optimizer = request.options.offload.parameters = Home::host;
  EXPECT_THROW(home_of_gradients(request, 500'000), OutOfMemory);
  // Parameters on the drive are enough for gradients to go there.
  request.options.offload.parameters = Home::disk;
  EXPECT_EQ(home_of_gradients(request, 2'400'000), Tier::disk);
}

TEST(FindPlan, TakesTheFirstWayOfSavingThatIsAcceptedElseTheLast) {
  using enum runtime::SaveMemory;
  train::ProgramRequest request;
  request.model = tiny_gpt2();
  request.options = tiny_options(1, 4, 1);
  const machine::Machine cpu = machine::cpu_machine(1);
  std::vector<runtime::SaveMemory> tried;
  const auto found = [&](runtime::SaveMemory wanted) {
    tried.clear();
    return train::plan_programs(request, {}, cpu, {snapshot, windows, writing},
                                [&](const Compiled& compiled) {
                                  tried.push_back(compiled.programs.settings.plan.saving);
                                  return tried.back() == wanted;
                                })
        .programs.settings.plan.saving;
  };
  EXPECT_EQ(found(snapshot), snapshot);
  EXPECT_EQ(found(windows), windows);
  EXPECT_EQ(tried, (std::vector{snapshot, windows}));
  EXPECT_EQ(found(none), writing) << "what is left is not asked about";
}

}  // namespace
}  // namespace strata::tests
