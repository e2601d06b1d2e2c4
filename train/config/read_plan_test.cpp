#include "train/config/read_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

using runtime::Plan;
using runtime::SaveMemory;
using testing::AllOf;
using testing::HasSubstr;

Plan some_plan() {
  Plan plan;
  plan.mesh = comm::data_mesh(2);
  plan.shape = {DType::bf16, 4, 128};
  plan.units = {{.unit = "embedding"}, {.unit = "layer.0"}};
  for (runtime::UnitPlan& unit : plan.units) unit.recipe.dtype = DType::bf16;
  return plan;
}

Plan read(const std::string& text, const Plan& asked,
          const std::vector<SaveMemory>& savings = {SaveMemory::none}, bool has_drive = false) {
  const TestDirectory directory;
  return read_plan(directory.file("plan.json", text), asked, savings, has_drive);
}

std::string refusal(const Plan& plan, const Plan& asked,
                    const std::vector<SaveMemory>& savings = {SaveMemory::none}) {
  try {
    (void)read(plan.to_json(), asked, savings);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ReadPlan, TakesTheTextAloneOrWhatTrainPrinted) {
  const Plan plan = some_plan();
  EXPECT_EQ(read(plan.to_json(), plan), plan);
  const std::string printed = "a note {of something} here\n" + plan.to_json() + "model: llama\n";
  EXPECT_EQ(read(printed, plan), plan);
  std::string of_windows;
  for (const char letter : printed) of_windows += letter == '\n' ? "\r\n" : std::string(1, letter);
  EXPECT_EQ(read(of_windows, plan), plan);
  EXPECT_THROW(read("no plan at all\n", plan), ConfigError);
  EXPECT_THROW(read("", plan), ConfigError);
  EXPECT_THROW(read("[0] {\n[0]   \"version\": 5\n", plan), ConfigError);
}

std::string refusal_of(const std::string& text) {
  try {
    (void)read(text, some_plan());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ReadPlan, RefusesASecondObjectAndStrayBraces) {
  const std::string plan = some_plan().to_json();
  const auto lines = std::ranges::count(plan, '\n');
  const std::string of_first =
      " beside the Plan of lines 1 to " + std::to_string(lines) + "; leave";
  const std::string after = "plan.json:" + std::to_string(lines + 1) + ": found ";
  EXPECT_THAT(refusal_of(plan + plan), AllOf(HasSubstr(after + "'{'" + of_first)));
  EXPECT_THAT(refusal_of(plan + "x}"), HasSubstr(after + "'x}'" + of_first));
  EXPECT_THAT(refusal_of(plan + "  {\n"), HasSubstr(after + "'  {'" + of_first));
  EXPECT_THAT(refusal_of("{\"version\": 5}\n" + plan),
              HasSubstr("plan.json:1: found '{\"version\": 5}' beside the Plan of lines 2 to"));
  EXPECT_NE(refusal_of(plan.substr(0, plan.size() - 1) + plan), "accepted");
}

TEST(ReadPlan, NamesAFileThatIsNone) {
  const auto said = [](const std::string& file) -> std::string {
    try {
      (void)read_plan(file, some_plan(), {SaveMemory::none}, false);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  const TestDirectory directory;
  EXPECT_EQ(said("no.plan"), "--plan no.plan: cannot open: No such file or directory");
  EXPECT_THAT(said(directory.path()), HasSubstr(": cannot open: Is a directory"));
}

TEST(ReadPlan, NamesTheLineOfTheFile) {
  std::string text = "one\ntwo\n" + some_plan().to_json();
  text.replace(text.find("\"data\": 2"), 9, "\"data\": 0");
  try {
    (void)read(text, some_plan());
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("plan.json:6: mesh.data"));
  }
}

TEST(ReadPlan, MayShardPlaceAndKeepOtherwise) {
  Plan plan = some_plan();
  plan.units[1].shard_parameter = true;
  plan.units[1].optimizer_tier = runtime::Tier::pageable;
  plan.saved = {{0, 1, {{"0.norm", runtime::SavedAction::recompute}}}};
  plan.units[0].recipe.trainable = false;
  plan.units[1].recipe.dtype = DType::f32;
  plan.units[1].recipe.optimizer = {
      .operation = "adamw_8bit", .moment_dtype = DType::u8, .scale_block = 128};
  plan.budget_bytes[0] = 1 << 20;
  plan.evaluates = true;
  EXPECT_EQ(read(plan.to_json(), some_plan()), plan);
}

TEST(ReadPlan, StaysWithinTheLimitsOfTheRun) {
  Plan plan = some_plan(), asked = some_plan();
  plan.budget_bytes[0] = 100;
  plan.host_bytes = 1000;
  asked.budget_bytes[0] = 50;
  asked.host_bytes = 2000;
  const Plan found = read(plan.to_json(), asked);
  EXPECT_EQ(found.budget_bytes[0], 50);
  EXPECT_EQ(found.host_bytes, 1000);
}

TEST(ReadPlan, RefusesOneForAnotherRunByField) {
  const auto differs = [](const auto& change) {
    Plan plan = some_plan();
    change(plan);
    return refusal(plan, some_plan());
  };
  EXPECT_THAT(differs([](Plan& p) { p.mesh = comm::data_mesh(4); }),
              AllOf(HasSubstr("plan.json: mesh.data: the Plan has 4, this run has 2 (ranks)"),
                    HasSubstr("--print-plan --steps 0")));
  EXPECT_THAT(differs([](Plan& p) { p.micro_steps = 3; }),
              HasSubstr("micro_steps: the Plan has 3, this run has 1 (--accumulation); give "
                        "--accumulation 3, or print a Plan for this run"));
  EXPECT_THAT(differs([](Plan& p) { p.virtual_ranks = 4; }), HasSubstr("(--virtual-ranks)"));
  EXPECT_THAT(differs([](Plan& p) { p.shape.dtype = DType::f32; }),
              HasSubstr("shape.dtype: the Plan has fp32, this run has bf16 (--dtype)"));
  EXPECT_THAT(differs([](Plan& p) { p.gradient.reduced = DType::bf16; }),
              HasSubstr("gradient.reduced: the Plan has bf16, this run has fp32"));
  EXPECT_THAT(differs([](Plan& p) { p.shape.batch = 1; }), HasSubstr("shape.batch"));
  EXPECT_THAT(differs([](Plan& p) { p.shape.sequence = 1; }), HasSubstr("shape.sequence"));
  EXPECT_THAT(differs([](Plan& p) { p.backend = kernels::DeviceCapabilities::Backend::cuda; }),
              HasSubstr("backend: the Plan has cuda, this run has cpu (--device)"));
  EXPECT_THAT(differs([](Plan& p) { p.units[1].unit = "layer.1"; }),
              HasSubstr("units[1].unit: the Plan has 'layer.1', this run has 'layer.0'"));
  EXPECT_THAT(differs([](Plan& p) { p.units[1].elements = 7; }),
              HasSubstr("units[1].elements: the Plan has 7, this run has 0 (--model)"));
  EXPECT_THAT(differs([](Plan& p) { p.units[0].recipe.optimizer.moments = 1; }),
              HasSubstr("units[0].recipe.optimizer.moments: the Plan has 1, this run has 2 "
                        "(--optimizer, --momentum)"));
  for (const char* other : {"lion", "sgd"})
    EXPECT_THAT(differs([&](Plan& p) { p.units[1].recipe.optimizer.operation = other; }),
                HasSubstr("units[1].recipe.optimizer.operation: the Plan has '" +
                          std::string(other) + "', this run has 'adamw' (--optimizer)"));
  EXPECT_THAT(differs([](Plan& p) { p.units.pop_back(); }),
              HasSubstr("units[1].unit: the Plan has none"));
  EXPECT_THAT(
      differs([](Plan& p) { p.updates = runtime::Updates::gradient; }),
      HasSubstr("updates: the Plan has 'gradient', this run has 'step_end' (--update-time)"));
}

TEST(ReadPlan, NeedsADriveForWhatItPutsThere) {
  const Plan asked = some_plan();
  Plan plan = asked;
  plan.units[1].parameter_tier = runtime::Tier::disk;
  EXPECT_THAT(refusal(plan, asked),
              HasSubstr("units[1].tier.parameter: the Plan has 'disk', this run has no drive"));
  plan.units[0].gradient_tier = runtime::Tier::disk;
  EXPECT_THAT(refusal(plan, asked), HasSubstr("units[0].tier.gradient: the Plan has 'disk'"));
  plan.saved = {{1, 2, {{"0.norm", runtime::SavedAction::disk}}}};
  EXPECT_THAT(refusal(plan, asked), HasSubstr("saved[0].actions.0.norm: the Plan has 'disk'"));
  EXPECT_EQ(read(plan.to_json(), asked, {SaveMemory::none}, true), plan);
}

TEST(ReadPlan, MustServeWhatTheRunDoes) {
  Plan asked = some_plan();
  asked.evaluates = true;
  EXPECT_THAT(refusal(some_plan(), asked), HasSubstr("evaluates: the Plan has false"));
  EXPECT_THAT(
      refusal(some_plan(), some_plan(), {SaveMemory::snapshot, SaveMemory::writing}),
      HasSubstr("the Plan is for a run that saves nothing, and has no memory for saving; leave out "
                "--output, or make the Plan with it"));
  Plan writing = some_plan();
  writing.saving = SaveMemory::writing;
  EXPECT_EQ(refusal(writing, some_plan(), {SaveMemory::snapshot, SaveMemory::writing}), "accepted");
}

TEST(ReadPlan, WhoSavesLessNeedsLessMemoryThanThePlanHas) {
  Plan plan = some_plan();
  plan.saving = SaveMemory::snapshot;
  const std::string text = plan.to_json();
  EXPECT_EQ(read(text, some_plan(), {SaveMemory::none}).saving, SaveMemory::none);
  EXPECT_EQ(read(text, some_plan(), {SaveMemory::writing}).saving, SaveMemory::writing);
  plan.saving = SaveMemory::writing;
  EXPECT_EQ(read(plan.to_json(), some_plan(), {SaveMemory::none}).saving, SaveMemory::none);
}

}  // namespace
}  // namespace strata::train
