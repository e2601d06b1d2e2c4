// Checks what is said of a choice, and of one that could be faster.
#include "train/planning/planning_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "train/config/testing/settled_options.h"
#include "train/planning/faster_than_asked.h"
#include "train/planning/testing/planned_runs.h"

namespace strata::train {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlanningText, NamesTheSettingsOfAStepWithoutALimit) {
  const ResolvedConfig config = resolve_flags({});
  PlannedRun planned = asked_run(config.options);
  EXPECT_THAT(
      describe_planned(planned, config, {}),
      ContainsRegex("\n  with memory without limit a step would take 1 s and need .*; within "
                    "the target it takes 1.2 times as long"));
  planned.unlimited_changes = {{"offload.layer_major", "true"}, {"actions", "[1]"}};
  EXPECT_THAT(describe_planned(planned, config, {}),
              HasSubstr("a step would take 1 s with --layer-major --actions ... and need "));
}

TEST(PlanningText, OffersWhatIsFasterByWhatCanBeTold) {
  const ResolvedConfig config = resolve_flags({});
  PlannedRun planned = asked_run(config.options);
  EXPECT_TRUE(faster_than_asked(planned, large_device()));
  planned.answer.unlimited->forecast.step_seconds = 1.19;
  EXPECT_FALSE(faster_than_asked(planned, large_device()));
  EXPECT_THAT(describe_planned(planned, config, large_device()),
              Not(HasSubstr("memory without limit")))
      << "no memory is what these settings lack";
  planned.answer.chosen->forecast.step_seconds = 275e-6;
  planned.answer.unlimited->forecast.step_seconds = 246e-6;
  EXPECT_FALSE(faster_than_asked(planned, large_device()));
}

TEST(PlanningText, OffersNameTheHostMemoryThatTheyNeed) {
  const ResolvedConfig config = resolve_flags({});
  PlannedRun planned = asked_run(config.options);
  plan::PlannedStep& faster = *planned.answer.unlimited;
  faster.choices.optimizer = plan::Home::host;
  faster.limits.host_bytes = 121'600'000'000;
  faster.needs.host = 1'234'567'890;
  EXPECT_THAT(describe_planned(planned, config, large_device()),
              HasSubstr("\n  a step of 1 s is possible with --offload-optimizer cpu "
                        "--host-memory 1235MB"));
}

TEST(PlanningText, SaysWhoseTimesMadeTheChoice) {
  const ResolvedConfig config = resolve_flags({});
  const PlannedRun planned = asked_run(config.options);
  MemoryBudget budget;
  const std::string without = describe_planned(planned, config, budget);
  EXPECT_THAT(without, Not(HasSubstr("measured")));
  budget.machine.times =
      machine::OperationTimes({{.signature = 1, .operation = "linear", .ns = 10, .guess_ns = 20}});
  const std::string text = describe_planned(planned, config, budget);
  EXPECT_THAT(text, HasSubstr(", at measured rates\n  times of instructions that runs have "
                              "measured here made this choice; plan, which reads none, may"));
}

TEST(PlanningText, SaysWhatBecomesOfWhatAFileLeavesOpen) {
  ResolvedConfig config = resolve_flags({});
  PlannedRun planned = asked_run(config.options);
  EXPECT_THAT(describe_planned(planned, config, {}),
              HasSubstr("the settings fit as they are, and nothing changes\n"));
  for (ResolvedField& field : config.fields)
    if (field.name == "zero.stage" || field.name == "micro_batch") {
      field.origin = Origin::automatic;
      field.where = "ds.json:1: a key";
    }
  EXPECT_THAT(describe_planned(planned, config, {}),
              HasSubstr("nothing changes; \"auto\" stays --micro-batch 4 --zero 0\n"));
  planned.answer.is_asked = false;
  planned.changes = {{"micro_batch", "2"}};
  set_planned(planned.changes, config);
  EXPECT_THAT(describe_planned(planned, config, {}),
              HasSubstr(": --micro-batch 2; \"auto\" stays --zero 0\n"));
}

TEST(PlanningText, SaysHowToGoOnFromASearchThatEndedEarly) {
  const ResolvedConfig config = resolve_flags({});
  PlannedRun planned = asked_run(config.options);
  EXPECT_THAT(describe_planned(planned, config, {}), Not(HasSubstr("ended early")));
  planned.answer.complete = false;
  EXPECT_THAT(
      describe_planned(planned, config, {}),
      HasSubstr("\n  the search ended early, and another plan may be faster: give one or two "
                "settings yourself, such as --zero N"));
}

TEST(PlanningText, PrintsSettingsThatCanBeTypedBesideTheTarget) {
  const ResolvedConfig config = resolve_flags({"--target-memory", "4GB"});
  PlannedRun planned = asked_run(config.options);
  planned.answer.is_asked = false;
  planned.changes = {{"zero.stage", "3"}, {"offload.device_memory_bytes", "3GB"}};
  const std::string text = describe_planned(planned, config, {});
  EXPECT_THAT(text, HasSubstr("target memory 4GB (balanced): --zero 3\n"));
  EXPECT_THAT(text, HasSubstr("\n  without --target-memory, these settings go with "
                              "--device-memory 3GB\n"));
  EXPECT_NO_THROW((void)resolve_flags({"--target-memory", "4GB", "--zero", "3"}));
  planned.changes.back().value = "24274407700";
  planned.answer.chosen->needs.device = 24'274'000'000;
  EXPECT_THAT(describe_planned(planned, config, {}), HasSubstr(" --device-memory 24274MB\n"));
  planned.answer.chosen->needs.device = 24'274'000'001;
  EXPECT_THAT(describe_planned(planned, config, {}), HasSubstr(" --device-memory 24274407700\n"));
  planned.changes.pop_back();
  EXPECT_THAT(describe_planned(planned, config, {}), Not(HasSubstr("--device-memory")));
}

TEST(PlanningText, TellsGuessedReasonsFromCompiledOnes) {
  const ResolvedConfig config = resolve_flags({});
  PlannedRun planned = asked_run(config.options);
  planned.changes = {{"zero.stage", "3"}, {"offload.layer_major", "true"}};
  planned.answer.reasons = {
      {.setting = plan::Setting::stage, .seconds = 1, .without_seconds = 10},
      {.setting = plan::Setting::order, .seconds = 2, .without_seconds = 8, .is_compiled = true}};
  EXPECT_THAT(
      describe_planned(planned, config, {}),
      HasSubstr("\n  each of these settings taken back alone, as guessed, of a step of 10 s:"
                "\n    without --zero 3: as much memory, steps 10.0 % (1 s) slower"
                "\n    without --layer-major: as much memory, steps 25.0 % (2 s) slower; as "
                "compiled, of a step of 8 s"));
  planned.answer.reasons.erase(planned.answer.reasons.begin());
  EXPECT_THAT(describe_planned(planned, config, {}),
              HasSubstr("\n  each of these settings taken back alone:\n    without --layer-major"));
}

}  // namespace
}  // namespace strata::train
