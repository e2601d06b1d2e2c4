// Resolves optimizers, what they keep, and the schedules of their learning rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;

TEST(Resolve, SchedulesNeedWhatTheirFormulasName) {
  EXPECT_THAT(refusal(with_batch(""), {"--scheduler", "cosine_with_min_lr"}),
              HasSubstr("cosine_with_min_lr needs min_lr or min_lr_rate: --lr_scheduler_kwargs"));
  EXPECT_THAT(refusal(with_batch(""), {"--scheduler", "warmup_stable_decay"}),
              HasSubstr("needs num_decay_steps"));
  EXPECT_THAT(
      refusal(with_batch(""), {"--scheduler", "cosine", "--lr", "1e-4", "--min-lr", "1e-3"}),
      HasSubstr("--min-lr: found 1e-3, expected at most the learning rate 1e-04"));
  EXPECT_THAT(refusal(with_batch(""), {"--scheduler", "polynomial", "--lr", "1e-8"}),
              HasSubstr("polynomial ends at lr_end 1e-07"));
  EXPECT_DOUBLE_EQ(resolve_flags({"--scheduler", "cosine", "--lr", "1e-4", "--min-lr", "1e-5"})
                       .options.scheduler.min_lr_rate,
                   0.1);
  EXPECT_THAT(
      lines(resolve_flags({"--lr_scheduler_type", "constant", "--warmup_ratio", "0.1"}).notes),
      HasSubstr("transformers' constant leaves it out"));
}

TEST(Resolve, AWarmUpLongerThanTheRunWarns) {
  const auto warnings = [](const std::string& type, const std::string& params,
                           const std::vector<std::string>& words) {
    return lines(resolve_text(with_batch("\"scheduler\": {\"type\": \"" + type +
                                         "\", \"params\": {" + params + "}}"),
                              words)
                     .warnings);
  };
  const std::string ending = ": the learning rate is still rising when it ends\n";
  const std::string steps = R"("warmup_num_steps": 100)";
  const std::string end = R"(, "total_num_steps": "auto")";
  const std::string longer =
      "ds.json:2: scheduler.params.warmup_num_steps: the warm-up of 100 steps is longer than the "
      "run of 50" +
      ending;
  EXPECT_EQ(warnings("WarmupDecayLR", steps + end, {"--steps", "50"}), longer);
  EXPECT_EQ(warnings("WarmupLR", steps, {"--steps", "50"}), longer);
  EXPECT_EQ(warnings("WarmupCosineLR", steps + end, {"--steps", "50"}), longer);
  EXPECT_EQ(warnings("WarmupLR", steps, {"--steps", "100"}), "");
  EXPECT_EQ(warnings("WarmupLR", steps, {"--steps", "0"}), "");
  EXPECT_EQ(warnings("WarmupLR", steps, {"--epochs", "1"}), "");  // not known yet
  EXPECT_EQ(
      warnings("WarmupLR", "", {"--steps", "50"}),
      "ds.json:2: scheduler.type: the warm-up of 1000 steps is longer than the run of 50" + ending);
  EXPECT_EQ(lines(resolve_flags({"--warmup_steps", "9", "--max_steps", "8"}).warnings),
            "--warmup-steps: the warm-up of 9 steps is longer than the run of 8" + ending);
  EXPECT_EQ(lines(resolve_flags({"--warmup_ratio", "1", "--max_steps", "8"}).warnings), "");
  // Nothing is said of the length of the run that the file is for.
  ParsedCommandLine check = flags({"--check-config", "ds.json"});
  const DeepSpeedSettings file =
      parse_deepspeed_json(with_batch(R"("scheduler": {"type": "WarmupLR"})"), "ds.json", false);
  EXPECT_EQ(lines(resolve(check, file, 1, small_model()).warnings), "");
}

TEST(Resolve, AScheduleThatEndsBeforeTheRunWarns) {
  const auto warnings = [](const std::vector<std::string>& words) {
    return lines(resolve_flags(words).warnings);
  };
  const std::string begin = "the schedule of 3 steps ends before the run of 6: the learning rate ";
  const std::vector<std::string> linear{"--scheduler", "linear", "--schedule-steps", "3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), linear.begin(), linear.end());
    return warnings(more);
  };
  EXPECT_EQ(with({"--steps", "6"}),
            "--schedule-steps: " + begin + "is 0 for the last 3 of 6 steps\n");
  EXPECT_EQ(with({"--steps", "4"}),
            "--schedule-steps: the schedule of 3 steps ends before the run of 4: the learning rate "
            "is 0 for the last step\n");
  EXPECT_EQ(with({"--steps", "3"}), "");
  EXPECT_EQ(with({"--epochs", "2"}), "");
  EXPECT_EQ(with({"--steps", "6", "--min-lr", "1e-4"}), "");
  EXPECT_EQ(warnings({"--scheduler", "polynomial", "--schedule-steps", "3", "--steps", "6"}), "");
  EXPECT_EQ(
      lines(resolve_text(with_batch(R"("scheduler": {"type": "WarmupDecayLR", "params":
                      {"total_num_steps": 3, "warmup_num_steps": 1}})"),
                         {"--steps", "6"})
                .warnings),
      "ds.json:3: scheduler.params.total_num_steps: " + begin + "is 0 for the last 2 of 6 steps\n");
}

TEST(Resolve, OneCycleNeedsItsRatesWhereItIsChosen) {
  EXPECT_EQ(refusal(with_batch(""), {"--scheduler", "OneCycle", "--lr", "1e-3"}),
            "--scheduler OneCycle: needs cycle_min_lr and cycle_max_lr, which no flag sets: give "
            "them in scheduler.params of a JSON that --config names");
  const std::string cycle = with_batch(R"("scheduler": {"type": "OneCycle", "params":
         {"cycle_min_lr": 0.1, "cycle_max_lr": 1}})");
  for (const auto& words :
       {std::vector<std::string>{}, std::vector<std::string>{"--scheduler", "OneCycle"}})
    EXPECT_THAT(refusal(cycle, words), HasSubstr("found cycle_momentum true"));
  EXPECT_EQ(refusal(cycle, {"--scheduler", "linear"}), "");
  const std::string range = with_batch(R"("scheduler": {"type": "LRRangeTest", "params":
         {"cycle_min_lr": 0.1, "cycle_max_lr": 1}})");
  EXPECT_EQ(refusal(range, {"--scheduler", "OneCycle"}), "");
}

TEST(Resolve, SchedulersStartFromDeepSpeedsOrHuggingFacesDefaults) {
  const auto file = [](const std::string& type, const std::string& params,
                       const std::vector<std::string>& words = {}) {
    return resolve_text(
        with_batch("\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.5}},"
                   "\"scheduler\": {\"type\": \"" +
                   type + "\", \"params\": {" + params + "}}"),
        words);
  };
  const SchedulerOptions warmup = file("WarmupLR", "").options.scheduler;
  EXPECT_EQ(warmup.warmup_type, WarmupType::logarithmic);
  EXPECT_EQ(warmup.warmup_num_steps, 1000);
  EXPECT_EQ(warmup.warmup_max_lr, 0.5);
  const ResolvedConfig decay = file("WarmupDecayLR", "\"total_num_steps\": 9");
  EXPECT_EQ(decay.options.scheduler.warmup_max_lr, 1e-3);
  EXPECT_THAT(lines(decay.notes), HasSubstr("rises to DeepSpeed's default of 0.001, not to "));
  const SchedulerOptions cycle =
      file("OneCycle",
           "\"cycle_min_lr\": 0, \"cycle_max_lr\": 1, \"cycle_momentum\": false,"
           "\"cycle_first_step_size\": 7, \"cycle_first_stair_count\": 3")
          .options.scheduler;
  EXPECT_EQ(cycle.cycle_second_step_size, 7);  // the same as on the way up
  EXPECT_EQ(cycle.cycle_second_stair_count, 3);
  const ResolvedConfig flagged = file("WarmupLR", "\"warmup_max_lr\": 0.25", {"--lr", "0.125"});
  EXPECT_EQ(flagged.options.scheduler.warmup_max_lr, 0.125);
  EXPECT_THAT(lines(flagged.notes), HasSubstr("--learning-rate 0.125 wins over the scheduler's"));
  const SchedulerOptions cosine =
      resolve_flags({"--lr_scheduler_type", "cosine", "--warmup_steps", "3", "--steps", "30"})
          .options.scheduler;
  EXPECT_EQ(cosine.type, kernels::ScheduleKind::cosine);
  EXPECT_EQ(cosine.warmup_num_steps, 3);
  EXPECT_EQ(cosine.total_num_steps, 30);
  EXPECT_EQ(resolve_flags({"--scheduler", "constant_with_warmup"}).options.scheduler.type,
            kernels::ScheduleKind::constant);
}

TEST(Resolve, LionHasTheBetasOfItsPaperOrOfDeepSpeed) {
  const auto type_lion = [](const std::string& params, const std::vector<std::string>& words = {}) {
    return resolve_text(
        with_batch("\"optimizer\": {\"type\": \"Lion\", \"params\": {" + params + "}}"), words);
  };
  const ResolvedConfig paper = resolve_flags({"--optimizer", "lion"});
  EXPECT_EQ(paper.options.optimizer.type, OptimizerType::lion);
  EXPECT_EQ(paper.options.optimizer.beta1, 0.9);
  EXPECT_EQ(paper.options.optimizer.beta2, 0.99);
  EXPECT_EQ(
      resolve_flags({"--optim", "lion_32bit", "--betas", "0.95", "0.98"}).options.optimizer.beta2,
      0.98);
  const ResolvedConfig deepspeed = type_lion("\"lr\": 1e-4");
  EXPECT_EQ(deepspeed.options.optimizer.type, OptimizerType::lion);
  EXPECT_EQ(deepspeed.options.optimizer.beta2, 0.999);
  EXPECT_THAT(lines(deepspeed.notes), HasSubstr("optimizer.type: the second beta is 0.999"));
  const ResolvedConfig said = type_lion("\"betas\": [0.9, 0.99], \"eps\": 1e-6");
  EXPECT_EQ(said.options.optimizer.beta2, 0.99);
  EXPECT_THAT(lines(said.notes), Not(HasSubstr("second beta")));
  EXPECT_THAT(lines(said.warnings), HasSubstr("params.eps: has no effect with Lion"));
  EXPECT_EQ(type_lion("", {"--optimizer", "adamw"}).options.optimizer.beta2, 0.999);
}

TEST(Resolve, NamesOfEightBitOptimizersChooseTheRecipe) {
  for (const char* name : {"adamw_8bit", "adamw_bnb_8bit"}) {
    const ResolvedConfig resolved = resolve_flags({"--optim", name});
    EXPECT_EQ(resolved.options.optimizer.type, OptimizerType::adamw);
    EXPECT_EQ(resolved.options.state_recipe, StateRecipe::eight_bit);
    EXPECT_EQ(resolved.origin_of("state_recipe"), Origin::command_line);
  }
  const ResolvedConfig other =
      resolve_flags({"--optim", "adamw_8bit", "--state-recipe", "bf16-moments"});
  EXPECT_EQ(other.options.state_recipe, StateRecipe::bf16_moments);
  EXPECT_THAT(lines(other.notes), HasSubstr("--state-recipe bf16-moments wins over --optimizer"));
}

TEST(Resolve, RecipesThatTheTypesDoNotAllowAreRefused) {
  const auto wrong = [](const std::vector<std::string>& words) {
    return refusal(with_batch(""), words);
  };
  const std::string types[] = {"adamw", "adam", "lion", "sgd"};
  const std::string recipes[] = {"fp32-master",         "packed-master", "bf16-moments",
                                 "packed-bf16-moments", "8bit",          "bf16-sr"};
  const bool allowed[4][6] = {{true, true, true, true, true, true},
                              {true, true, true, true, true, true},
                              {true, true, true, true, false, false},
                              {true, false, false, false, false, false}};
  const bool any_dtype[] = {true, false, true, false, true, false};
  for (int t = 0; t < 4; ++t)
    for (int r = 0; r < 6; ++r)
      for (const std::string dtype : {"bf16", "fp16", "fp32"}) {
        const std::string said =
            wrong({"--optimizer", types[t], "--state-recipe", recipes[r], "--dtype", dtype});
        EXPECT_EQ(said.empty(), allowed[t][r] && (any_dtype[r] || dtype == "bf16"))
            << types[t] << " " << recipes[r] << " " << dtype << ": " << said;
        EXPECT_LE(std::count(said.begin(), said.end(), '\n'), allowed[t][r] ? 0 : 1) << said;
      }
  EXPECT_EQ(
      wrong({"--optimizer", "lion", "--state-recipe", "bf16-sr"}),
      "--state-recipe: found bf16-sr, which needs dtype bf16, not fp32; change one of the two\n"
      "--state-recipe: found bf16-sr, which needs AdamW or Adam; change that or use fp32-master");
  EXPECT_EQ(wrong({"--optimizer", "sgd", "--state-recipe", "bf16-moments"}),
            "--state-recipe: found bf16-moments, which needs AdamW, Adam or Lion; change that or "
            "use fp32-master");
}

}  // namespace
}  // namespace strata::train
