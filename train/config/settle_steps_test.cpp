#include "train/config/settle_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The number of samples; with a global batch of 8 a pass has 13 steps.
constexpr std::int64_t kSamples = 103;

TrainOptions settled(std::vector<std::string> words, std::int64_t samples = kSamples) {
  words.insert(words.end(), {"--micro-batch", "4", "--accumulation", "2"});
  TrainOptions options = resolve(flags(words), 1, small_model()).options;
  settle_steps(options, samples);
  return options;
}

TEST(SettleSteps, EpochsAreStepsAsInTransformers) {
  EXPECT_EQ(settled({"--num_train_epochs", "3"}).steps, 39);
  EXPECT_EQ(settled({"--num_train_epochs", "0.5"}).steps, 7);  // 6.5 rounded up
  EXPECT_EQ(settled({"--num-train-epochs=1"}, 3).steps, 1);    // less than a batch
  EXPECT_EQ(settled({"--max_steps", "-1", "--num_train_epochs", "2"}).steps, 26);
  EXPECT_EQ(settled({"--max_steps", "-1"}).steps, 39);  // transformers' default of three epochs
  EXPECT_EQ(settled({"--steps", "5", "--num_train_epochs", "2"}).steps, 5);
  EXPECT_THAT(lines(resolve(flags({"--steps", "5", "--epochs", "2"}), 1, small_model()).notes),
              HasSubstr("--steps 5 wins over --epochs 2, as in transformers"));
}

TEST(SettleSteps, SettlingAgainAfterAnotherBatchStartsFromTheEpochs) {
  TrainOptions options =
      settled({"--epochs", "3", "--warmup_ratio", "0.1", "--scheduler", "cosine"});
  EXPECT_EQ(options.scheduler.warmup_num_steps, 4);  // 3.9 rounded up
  EXPECT_EQ(options.scheduler.total_num_steps, 39);
  options.global_batch = 16;
  settle_steps(options, kSamples);
  EXPECT_EQ(options.steps, 21);
  EXPECT_EQ(options.scheduler.warmup_num_steps, 3);
  EXPECT_EQ(options.scheduler.total_num_steps, 21);
  EXPECT_EQ(describe_epochs(options, kSamples),
            "3 epochs of 103 samples, 16 per step: 21 steps, 3 of them warm-up");
}

TEST(SettleSteps, WarmupRatioIsPartOfTheStepsRoundedUp) {
  EXPECT_EQ(settled({"--steps", "50", "--warmup_ratio", "0.03"}).scheduler.warmup_num_steps, 2);
  EXPECT_EQ(settled({"--steps", "50", "--warmup_steps", "0.03"}).scheduler.warmup_num_steps, 2);
  EXPECT_EQ(settled({"--steps", "50", "--lr-warmup-fraction", "0"}).scheduler.warmup_num_steps, 0);
  const TrainOptions both =
      settled({"--steps", "50", "--warmup_ratio", "0.5", "--warmup_steps", "3"});
  EXPECT_EQ(both.scheduler.warmup_num_steps, 3);  // as in transformers
  // The file's "auto" is answered, its number overruled.
  const std::string scheduler =
      R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": )";
  const std::vector<std::string> words = {"--steps", "50", "--warmup_ratio", "0.1"};
  EXPECT_EQ(
      resolve_text(with_batch(scheduler + "\"auto\"}}"), words).options.scheduler.warmup_num_steps,
      5);
  const std::string peak =
      R"("scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto"}})";
  EXPECT_EQ(resolve_text(with_batch(peak), {"--scheduler", "cosine"}).options.scheduler.type,
            kernels::ScheduleKind::cosine);
  EXPECT_EQ(resolve_text(with_batch(scheduler + "9}}"), words).options.scheduler.warmup_num_steps,
            5);
}

TEST(SettleSteps, StrategiesBecomeIntervals) {
  const TrainOptions epoch = settled({"--eval_strategy", "epoch", "--save_strategy", "epoch",
                                      "--logging_strategy", "epoch", "--output", "o"});
  EXPECT_EQ(epoch.eval_every_steps, 13);
  EXPECT_EQ(epoch.checkpoint.every, SaveInterval{.steps = 13});
  EXPECT_EQ(epoch.steps_per_print, 13);
  EXPECT_THAT(describe_epochs(epoch, kSamples),
              HasSubstr("epochs of 103 samples, 8 per step: 100"));
  const TrainOptions steps =
      settled({"--evaluation_strategy", "steps", "--save-strategy", "steps", "--logging_steps", "7",
               "--save_steps", "5", "--output", "o"});
  EXPECT_EQ(steps.eval_every_steps, 7);  // default: as often as lines are printed
  EXPECT_EQ(steps.checkpoint.every, SaveInterval{.steps = 5});
  EXPECT_EQ(settled({"--eval_strategy", "steps"}).eval_every_steps, 500);
  const TrainOptions never =
      settled({"--eval_strategy", "no", "--eval_steps", "3", "--save_strategy", "no",
               "--save_steps", "3", "--output", "o"});
  EXPECT_EQ(never.eval_every_steps, 0);
  EXPECT_EQ(never.checkpoint.every, SaveInterval{});
  EXPECT_EQ(describe_epochs(never, kSamples), "");
}

TEST(SettleSteps, IntervalsBelowOneArePartsOfAllStepsRoundedUp) {
  const std::vector<std::string> parts = {"--logging_steps", "0.07", "--eval_steps", "0.1",
                                          "--save_steps",    "0.5",  "--output",     "o"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), parts.begin(), parts.end());
    return words;
  };
  const TrainOptions given = settled(with({"--steps", "25"}));
  EXPECT_EQ(given.steps_per_print, 2);  // 1.75 rounded up
  EXPECT_EQ(given.eval_every_steps, 3);
  EXPECT_EQ(given.checkpoint.every, SaveInterval{.steps = 13});
  TrainOptions epochs = settled(with({"--epochs", "3"}));
  EXPECT_EQ(epochs.steps_per_print, 3);
  EXPECT_EQ(epochs.eval_every_steps, 4);
  EXPECT_EQ(epochs.checkpoint.every, SaveInterval{.steps = 20});
  epochs.global_batch = 16;
  settle_steps(epochs, kSamples);  // 21 steps
  EXPECT_EQ(epochs.checkpoint.every, SaveInterval{.steps = 11});
  EXPECT_EQ(settled({"--steps", "50", "--eval_strategy", "steps", "--logging_steps", "0.1"})
                .eval_every_steps,
            5);
  TrainOptions by_lines =
      settled({"--epochs", "3", "--eval_strategy", "steps", "--logging_steps", "0.1"});
  EXPECT_EQ(by_lines.eval_every_steps, by_lines.steps_per_print);
  EXPECT_GT(by_lines.eval_every_steps, 1) << "the steps are not known at first";
  EXPECT_EQ(settled(with({"--steps", "25", "--save_strategy", "no"})).checkpoint.every,
            SaveInterval{});
  EXPECT_EQ(value_of(resolve_flags(with({"--steps", "25"})), "eval_every_steps"), "0.1");
  const TrainOptions file =
      resolve_text(with_batch(R"("strata": {"eval_every": 0.1, "save_every": 0.5})"),
                   {"--steps", "25", "--output", "o"})
          .options;
  EXPECT_EQ(file.eval_every_steps, 3);
  EXPECT_EQ(file.checkpoint.every, SaveInterval{.steps = 13});
}

TEST(SettleSteps, AWarmUpLongerThanTheEpochsIsDescribed) {
  const std::vector<std::string> words = {"--epochs", "1", "--scheduler", "cosine",
                                          "--warmup_steps"};
  const auto with = [&](std::vector<std::string> all, const std::string& steps) {
    all.push_back(steps);
    return settled(all);
  };
  const TrainOptions options = with(words, "100000");
  EXPECT_EQ(describe_unfinished_warmup(options),
            "the warm-up of 100000 steps is longer than the run of " +
                std::to_string(options.steps) + ": the learning rate is still rising when it ends");
  EXPECT_EQ(describe_unfinished_warmup(with(words, std::to_string(options.steps))), "");
  EXPECT_EQ(describe_unfinished_warmup(settled({"--epochs", "1", "--warmup_steps", "100000"}, 0)),
            "");  // not known yet
}

TEST(SettleSteps, WithoutDataAnEpochHasNoLength) {
  const std::vector<std::string> words = {"--epochs",     "2", "--eval_strategy", "epoch",
                                          "--eval_steps", "7", "--save_strategy", "epoch",
                                          "--save_steps", "5", "--output",        "o"};
  const TrainOptions options = settled(words, 0);
  EXPECT_EQ(options.steps, 0);  // not known yet
  EXPECT_EQ(options.eval_every_steps, 7);
  EXPECT_EQ(options.checkpoint.every, SaveInterval{.steps = 5});
}

TEST(SettleSteps, WhatWaitsForTheDataIsShownSo) {
  const ResolvedConfig resolved = resolve(
      flags({"--epochs", "2", "--warmup-ratio", "0.1", "--scheduler", "linear"}), 1, small_model());
  for (const char* name : {"steps", "scheduler.warmup_num_steps", "scheduler.total_num_steps"})
    EXPECT_EQ(value_of(resolved, name), "by epochs") << name;
  EXPECT_EQ(value_of(resolved, "epochs"), "2.0");
}

}  // namespace
}  // namespace strata::train
