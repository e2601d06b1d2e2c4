#include "plan/programs_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace strata::plan {
namespace {

class ProgramsAheadTest : public testing::Test {
 protected:
  [[nodiscard]] static ProgramsAhead::Question question(int micro_steps) {
    ProgramsAhead::Question question;
    question.plan.micro_steps = micro_steps;
    return question;
  }
  /// Counts what is made, and makes Programs of so much work.
  [[nodiscard]] ProgramsAhead::Make make(std::int64_t work) {
    return [this, work] {
      ++made_;
      return compile::Compiled{.work = work};
    };
  }

  std::atomic<int> made_ = 0;
};

TEST_F(ProgramsAheadTest, WhatWasBegunIsNotMadeAgain) {
  ProgramsAhead ahead(1, 0);
  ahead.begin(question(1), make(7));
  EXPECT_EQ(ahead.ask(question(1), make(8)).work, 7);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(ahead.taken(), 1);
  EXPECT_EQ(ahead.ask(question(1), make(8)).work, 8) << "an answer is handed out once";
}

TEST_F(ProgramsAheadTest, OtherQuestionsAreMadeWhenTheyAreAsked) {
  ProgramsAhead ahead(1, 0);
  ahead.begin(question(1), make(7));
  EXPECT_EQ(ahead.ask(question(2), make(8)).work, 8);
  ProgramsAhead::Question rough = question(1);
  rough.effort = compile::Effort::rough;
  EXPECT_EQ(ahead.ask(rough, make(9)).work, 9);
  EXPECT_EQ(ahead.taken(), 0);
}

TEST_F(ProgramsAheadTest, NothingIsBegunWithoutAFreeThread) {
  ProgramsAhead none(0, 0);
  none.begin(question(1), make(7));
  EXPECT_EQ(none.ask(question(1), make(8)).work, 8);

  ProgramsAhead one(1, 0);
  std::promise<void> go_on;
  one.begin(question(1), [&] {
    go_on.get_future().wait();
    return compile::Compiled{.work = 5};
  });
  one.begin(question(2), make(7));
  EXPECT_EQ(one.ask(question(2), make(8)).work, 8);
  go_on.set_value();
  EXPECT_EQ(one.ask(question(1), make(9)).work, 5);
}

TEST_F(ProgramsAheadTest, SmallProgramsAreNotWorthAThread) {
  ProgramsAhead ahead(1, 100);
  EXPECT_EQ(ahead.ask(question(1), make(99)).work, 99);
  ahead.begin(question(2), make(99));
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(ahead.ask(question(3), make(100)).work, 100);
  ahead.begin(question(2), make(99));
  EXPECT_EQ(ahead.ask(question(2), make(1)).work, 99);
}

TEST_F(ProgramsAheadTest, ErrorsComeWhenItIsAsked) {
  ProgramsAhead ahead(1, 0);
  ahead.begin(question(1), []() -> compile::Compiled { throw std::runtime_error("no such Plan"); });
  EXPECT_THROW((void)ahead.ask(question(1), make(1)), std::runtime_error);
  ahead.begin(question(1), []() -> compile::Compiled { throw std::runtime_error("nobody asks"); });
}

TEST_F(ProgramsAheadTest, AnswersThatNobodyAsksForMakeRoom) {
  ProgramsAhead ahead(1, 0);
  constexpr int kMany = 6;
  for (int i = 0; i < kMany; ++i)
    while (made_ == i) {
      ahead.begin(question(i), make(i));
      std::this_thread::yield();
    }
  EXPECT_EQ(ahead.ask(question(0), make(50)).work, 50) << "it has made room";
  EXPECT_EQ(ahead.ask(question(kMany - 1), make(50)).work, kMany - 1);
}

}  // namespace
}  // namespace strata::plan
