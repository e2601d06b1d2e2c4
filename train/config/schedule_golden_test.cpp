// Compares schedules that flags ask for with those of transformers' own schedulers
// (tests/golden/make_schedules.py).
#include <gtest/gtest.h>

#include "core/json.h"
#include "kernels/ops/learning_rate.h"
#include "train/config/make_plan.h"
#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

TEST(Schedules, FollowTransformers) {
  const JsonValue cases = read_json_file(STRATA_SCHEDULES, {});
  EXPECT_GT(cases.size(), 20);
  for (const JsonValue& one : cases.elements()) {
    std::vector<std::string> words;
    std::string command;
    for (const JsonValue& word : one.at("flags").elements()) {
      words.push_back(word.as_string());
      command += words.back() + ' ';
    }
    const TrainOptions options = resolve(flags(words), 1, small_model()).options;
    const kernels::LearningRateSchedule schedule =
        kernels::schedule_from(control_attributes(options));
    for (const JsonValue& point : one.at("points").elements()) {
      const std::vector<JsonValue> numbers = point.elements();
      const std::int64_t step = numbers[0].as_integer();
      EXPECT_NEAR(kernels::learning_rate(schedule, step), numbers[1].as_number(), 1e-14)
          << command << "after " << step << " steps";
    }
  }
}

}  // namespace
}  // namespace strata::train
