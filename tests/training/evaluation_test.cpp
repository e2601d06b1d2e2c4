// The held-out loss is added up in fixed point, which must neither saturate nor hide a NaN.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

TrainingCase evaluation_only(int global_batch) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(1, global_batch, 0);
  return training;
}

// An untrained model loses about log(100) nats on each token of a vocabulary of 100, so 200 x 16
// tokens sum up to 15,000.
TEST(Evaluation, DoesNotSaturateOnLargeBatches) {
  const double few = run_training(evaluation_only(8)).evaluation;
  const double many = run_training(evaluation_only(200)).evaluation;
  EXPECT_NEAR(few, std::log(100.0), 0.1);
  EXPECT_NEAR(many, std::log(100.0), 0.1);
}

TEST(Evaluation, IsNotANumberWhenALossIsNot) {
  TrainingCase training = evaluation_only(8);
  training.options.steps = 2;
  training.options.optimizer.learning_rate = 1e6;
  const TrainingResult result = run_training(training);
  EXPECT_TRUE(std::isnan(result.evaluation)) << result.evaluation;
}

}  // namespace
}  // namespace strata::tests
