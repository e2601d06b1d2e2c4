#include "train/run/earlier_plan.h"

#include <gtest/gtest.h>

#include "train/config/option_fields.h"

namespace strata::train {
namespace {

ResolvedConfig config_of(const TrainOptions& options, std::string_view given = "") {
  ResolvedConfig config;
  config.options = options;
  for (const OptionField& field : option_fields(config.options))
    config.fields.push_back({std::string(field.name), text_of(field),
                             field.name == given ? Origin::command_line : Origin::default_value,
                             ""});
  return config;
}

TrainOptions with_target(const std::string& memory) {
  TrainOptions options;
  options.target.memory = memory;
  return options;
}

TEST(EarlierPlan, WhatIsAskedCountsTargetBatchAndGivenSettings) {
  TrainOptions options = with_target("2GB");
  const std::string asked = asked_of_planner(config_of(options), 2);
  options.steps += 5;
  options.output = "out";
  options.micro_batch = 4;  // open: what "auto" made of it
  EXPECT_EQ(asked_of_planner(config_of(options), 2), asked);
  const auto differs = [&](const ResolvedConfig& config, int ranks) {
    return differences(asked, asked_of_planner(config, ranks), "open");
  };
  EXPECT_EQ(differs(config_of(options), 1), "ranks 2 there, 1 here");
  EXPECT_EQ(differs(config_of(options, "micro_batch"), 2), "micro_batch open there, 4 here");
  options.target.memory = "1GB";
  EXPECT_EQ(differs(config_of(options), 2), "target.memory 2GB there, 1GB here");
  options = with_target("2GB");
  options.offload.nvme_paths = {"drive"};
  EXPECT_EQ(differs(config_of(options), 2), "drive no there, yes here");
}

TEST(EarlierPlan, PlannedSettingsAreReadBackIfThisBuildHasThem) {
  const std::vector<PlannedOption> planned{{"zero.stage", "2"}, {"micro_batch", "4"}};
  EXPECT_EQ(read_planned(to_lines(planned)), planned);
  EXPECT_EQ(read_planned(""), std::vector<PlannedOption>{}) << "the settings as they were asked";
  EXPECT_FALSE(read_planned("zero.stages 2\n"));
  EXPECT_FALSE(read_planned("zero.stage two\n"));
  EXPECT_FALSE(read_planned("dump_state elsewhere\n")) << "no planner sets it";
  EXPECT_TRUE(
      read_planned("offload.device_memory_bytes 2GB\noffload.host_memory_bytes 4GB\n"
                   "state_recipe 8bit\n"));
}

TEST(EarlierPlan, OtherSettingsAreNotedWithTheirReason) {
  const TargetPlan there{"ranks 1\ntarget.memory auto\n",
                         "micro_batch 4\noffload.host_memory_bytes 4GB\n"};
  TargetPlan here = there;
  here.planned = "micro_batch 4\noffload.host_memory_bytes 3GB\n";
  EXPECT_EQ(note_on_plan(there, here, "why"), "") << "another limit changes nothing";
  here.planned = "zero.stage 2\n";
  const std::string note = note_on_plan(there, here, "they do not fit");
  EXPECT_NE(
      note.find("micro_batch 4 there, not planned here, zero.stage not planned there, 2 here; "
                "they do not fit."),
      std::string::npos)
      << note;
  here.asked = "ranks 1\ntarget.memory 1GB\n";
  const std::string other = note_on_plan(there, here, "they do not fit");
  EXPECT_NE(other.find("differs, too: target.memory auto there, 1GB here."), std::string::npos)
      << other;
  EXPECT_EQ(note_on_plan({}, here, ""), "") << "an earlier version, or a run without a target";
}

}  // namespace
}  // namespace strata::train
