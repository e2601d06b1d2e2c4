// Agents of one host that follow one another: whom the coordinator listens to.
#include "launcher/control/testing/coordinator_rig.h"

namespace strata::launcher {
namespace {

TEST_F(CoordinatorTest, ListensToANewAgentOnlyOnceNothingOfTheOldIsLeft) {
  open({"a", "b"});
  beat("a", 0, true);
  beat("b", 0, true);
  hello("b", "2");
  EXPECT_TRUE(sent<StopAttempt>("a"));
  ended("a", blames_a_peer(40));
  for (int i = 0; i < 6; ++i) {
    now_ += seconds(1);
    beat("a", 0, false);
    beat("b", -1, false, "2");
  }
  EXPECT_FALSE(done<TellReport>()) << "the lease of the old agent lasts";
  tick_after(milliseconds(500));
  EXPECT_EQ(sent<StartAttempt>("b").value().placement.attempt, 1);
}

TEST_F(CoordinatorTest, KeepsASuccessorWhenTheAgentBeforeSaysHelloAgain) {
  open({"a"});
  beat("a", 0, true);
  hello("a", "2");
  hello("a", "1", 0);
  forget();
  ended("a", blames_a_peer(40));
  EXPECT_EQ(done<SendToAgent>().value().agent, "2");
  EXPECT_EQ(sent<StartAttempt>("a").value().placement.attempt, 1);
}

// Fault 31.
TEST_F(CoordinatorTest, NeverListensAgainToAnAgentThatAnotherHasFollowed) {
  open({"a", "b"}, 2);
  tell(ConnectionBroke{"b", "1"});
  ended("a", blames_a_peer(40));
  ended("b", blames_a_peer(40));
  hello("b", "2");
  EXPECT_EQ(sent<StartAttempt>("b").value().placement.attempt, 1);
  forget();
  hello("b", "1");
  EXPECT_FALSE(sent<StopAttempt>("a")) << "its Hello came late";
  EXPECT_TRUE(sent<Dismiss>("b"));
  EXPECT_EQ(done<SendToAgent>().value().agent, "1");
  EXPECT_TRUE(run_->is_running());
}

TEST_F(CoordinatorTest, DismissesAnAgentThatAnotherHasFollowed) {
  open({"a", "b"});
  ended("a", blames_a_peer(40));
  forget();
  hello("a", "2");
  ASSERT_EQ(actions_.size(), 1U);
  const auto& send = std::get<SendToAgent>(actions_[0]);
  EXPECT_EQ(send.agent, "1");
  EXPECT_TRUE(std::holds_alternative<Dismiss>(send.message));
}

TEST_F(CoordinatorTest, DismissesASuccessorThatAnotherHasFollowed) {
  open({"a"});
  beat("a", 0, true);
  hello("a", "2");
  forget();
  hello("a", "3");
  EXPECT_TRUE(sent<Dismiss>("a"));
  EXPECT_EQ(done<SendToAgent>().value().agent, "2");
}

TEST_F(CoordinatorTest, LearnsOfACheckpointFromAnAgentThatAnotherHasFollowed) {
  open({"a", "b"});
  beat("a", 0, true);
  hello("a", "2");
  beat("a", 0, false);  // overtakes the facts
  ended("a", blames_a_peer(40));
  ended("b", blames_a_peer(-1));
  EXPECT_EQ(run_->attempt(), 1) << "the run has committed something";
}

TEST_F(CoordinatorTest, SpeaksToTheAgentThatHasRanksAndNotToItsSuccessor) {
  open({"a", "b"});
  beat("b", 0, true);
  hello("b", "2");
  forget();
  beat("b", 0, true);
  EXPECT_EQ(done<SendToAgent>().value().agent, "1");
}

}  // namespace
}  // namespace strata::launcher
