#include "train/run/batches_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"

namespace strata::train {
namespace {

/// Fills batches with 100 * step + micro-step, and records which steps were read.
struct Data {
  std::vector<std::int64_t> read;
  std::int64_t broken_from = 1'000'000;

  FillBatch reader() {
    return [this](std::int64_t step, int micro_step, const MicroBatch& batch) {
      if (step >= broken_from) throw DataError("no step " + std::to_string(step));
      if (micro_step == 0) read.push_back(step);
      const auto number = static_cast<std::int32_t>(100 * step + micro_step);
      std::ranges::fill(batch.tokens, number);
      std::ranges::fill(batch.targets, number + 1);
      std::ranges::fill(batch.samples, number);
    };
  }
};

constexpr StepShape kShape{.micro_steps = 2, .samples = 3, .sequence = 4};

struct Given {
  std::array<std::int32_t, 12> tokens{}, targets{};
  std::array<std::int64_t, 3> samples{};
};

Given give(const BatchesAhead& ahead, std::int64_t step, int micro_step) {
  Given given;
  ahead.give(step, micro_step, {given.tokens, given.targets, given.samples});
  return given;
}

TEST(BatchesAhead, GiveWhatWasRead) {
  Data data;
  BatchesAhead ahead(data.reader(), kShape, 5, 9);
  for (std::int64_t step = 5; step < 9; ++step) {
    EXPECT_FALSE(ahead.reach(step));
    for (int m = 0; m < 2; ++m) {
      const Given given = give(ahead, step, m);
      const auto number = static_cast<std::int32_t>(100 * step + m);
      EXPECT_EQ(std::ranges::count(given.tokens, number), 12);
      EXPECT_EQ(std::ranges::count(given.targets, number + 1), 12);
      EXPECT_EQ(std::ranges::count(given.samples, number), 3);
    }
  }
  EXPECT_EQ(data.read, (std::vector<std::int64_t>{5, 6, 7, 8}));  // each once, none after the last
}

TEST(BatchesAhead, AreThereForTheStepsThatBeginBeforeAllHear) {
  Data data{.read = {}, .broken_from = 7};
  BatchesAhead ahead(data.reader(), kShape, 0, 100);
  for (std::int64_t step = 0; step < 5; ++step) EXPECT_FALSE(ahead.reach(step)) << step;
  EXPECT_NO_THROW(ahead.rethrow());
  EXPECT_TRUE(ahead.reach(5));  // all ranks hear of it after step 6 has begun
  EXPECT_EQ(give(ahead, 5, 0).tokens[0], 500);
  EXPECT_TRUE(ahead.reach(6));
  EXPECT_EQ(give(ahead, 6, 1).tokens[0], 601);
  EXPECT_THROW(ahead.rethrow(), DataError);
}

TEST(BatchesAhead, DataThatCannotBeReadAtTheStartThrow) {
  Data data{.read = {}, .broken_from = 1};
  EXPECT_THROW(BatchesAhead(data.reader(), kShape, 0, 100), DataError);
  EXPECT_NO_THROW(BatchesAhead(data.reader(), kShape, 0, 1));  // no step needs it
}

}  // namespace
}  // namespace strata::train
