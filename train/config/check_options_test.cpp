#include "train/config/check_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "core/error.h"

namespace strata::train {
namespace {

TrainOptions good_options() {
  TrainOptions options;
  options.sequence_length = 16;
  return options;
}

std::string fault_of(const TrainOptions& options, int world) {
  try {
    check_options(options, world);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(CheckOptions, TakesDefaultsWithALength) {
  EXPECT_EQ(fault_of(good_options(), 1), "");
  EXPECT_EQ(fault_of(TrainOptions{}, 1),
            "TrainOptions: sequence_length is 0, expected tokens per sequence");
}

TEST(CheckOptions, NamesEveryNumberThatCannotBe) {
  TrainOptions options = good_options();
  options.optimizer.learning_rate = std::numeric_limits<double>::quiet_NaN();
  options.zero.stage = 4;
  options.accumulation = 0;
  options.eval_samples = -1;
  const std::string fault = fault_of(options, 1);
  EXPECT_THAT(fault, testing::HasSubstr(
                         "optimizer.learning_rate is nan, expected a number from 0 to 1000000"));
  EXPECT_THAT(fault, testing::HasSubstr("; zero.stage is 4, expected a number from 0 to 3; "));
  EXPECT_THAT(fault,
              testing::HasSubstr("accumulation is 0, expected a number from 1 to 16777216; "));
  EXPECT_THAT(fault, testing::HasSubstr("eval_samples is -1, expected a number of at least 0; "));
}

TEST(CheckOptions, ADecayNeedsItsEnd) {
  TrainOptions options = good_options();
  options.scheduler.type = kernels::ScheduleKind::cosine;
  EXPECT_EQ(fault_of(options, 1),
            "TrainOptions: scheduler.total_num_steps is 0, expected the step at which "
            "scheduler.type cosine ends");
  options.scheduler.total_num_steps = 10;
  EXPECT_EQ(fault_of(options, 1), "");
}

TEST(CheckOptions, ARecipeThatTheOptimizerHasNotIsNamed) {
  TrainOptions options = good_options();
  options.optimizer.type = OptimizerType::lion;
  options.state_recipe = StateRecipe::eight_bit;
  EXPECT_EQ(fault_of(options, 1), "TrainOptions: state_recipe 8bit needs AdamW or Adam");
}

TEST(CheckOptions, ComparesTheSizesOfBatches) {
  TrainOptions options = good_options();
  EXPECT_EQ(
      fault_of(options, 2),
      "TrainOptions: global_batch is 4, expected 8: micro_batch 4 x accumulation 1 x 2 ranks");
  options.virtual_ranks = 4;
  options.global_batch = 16;
  EXPECT_EQ(fault_of(options, 2), "");
}

}  // namespace
}  // namespace strata::train
