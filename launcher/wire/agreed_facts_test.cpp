#include "launcher/wire/agreed_facts.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

const AgreedFacts kOwn{.build = "Strata 0.1\nmlaunch 12",
                       .options = {{"--nnodes", "1:2"}, {"--elastic", ""}, {"--rejoin", "60"}},
                       .command = {"train", "--zero", "3"}};

TEST(AgreedFacts, WhatIsEqualIsNoReasonToRefuse) {
  EXPECT_FALSE(difference(kOwn, kOwn));
  AgreedFacts other = kOwn;
  other.options.erase(other.options.begin() + 1);  // not given
  EXPECT_FALSE(difference(other, kOwn));
}

TEST(AgreedFacts, BothHostsAreToldWhatDiffersAsTheySeeIt) {
  AgreedFacts other = kOwn;
  other.build = "Strata 0.2\nmlaunch 34";
  auto differs = difference(other, kOwn);
  ASSERT_TRUE(differs);
  EXPECT_EQ(differs->to_agent,
            "this host has Strata 0.2, the coordinator 0.1; this host has mlaunch 34, the "
            "coordinator 12; install the same Strata everywhere");
  EXPECT_EQ(differs->to_coordinator,
            "it has Strata 0.2, this host 0.1; it has mlaunch 34, this host 12; install the same "
            "Strata everywhere");
  EXPECT_EQ(differs->exit_code, 78);
  other = kOwn;
  other.command.pop_back();
  differs = difference(other, kOwn);
  ASSERT_TRUE(differs);
  EXPECT_NE(differs->to_agent.find("what follows '--zero' is nothing on this host and '3' there"),
            std::string::npos);
  EXPECT_NE(
      differs->to_coordinator.find("what follows '--zero' is nothing there and '3' on this host"),
      std::string::npos);
}

TEST(AgreedFacts, AnOptionThatOneCommandLacksIsNamed) {
  const auto told = [](std::vector<std::string> theirs) {
    AgreedFacts other = kOwn;
    other.command = std::move(theirs);
    const std::string text = difference(other, kOwn).value().to_agent;
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(told({"train", "--bf16", "--zero", "3"}),
            "--bf16 is given on this host and not there; give all hosts the same");
  EXPECT_EQ(told({"train", "--zero", "3", "--steps=5"}),
            "--steps is given on this host and not there; give all hosts the same");
  EXPECT_EQ(told({"train"}), "--zero is given there and not on this host; give all hosts the same");
  EXPECT_EQ(told({"train", "--zero", "3", "data"}),
            "what follows '3' is 'data' on this host and nothing there; give all hosts the same");
}

TEST(AgreedFacts, AnOptionThatIsWrittenOtherwiseOrGivenAgainIsCalledSo) {
  const auto told = [](std::vector<std::string> theirs, std::vector<std::string> own) {
    AgreedFacts agents = kOwn, coordinators = kOwn;
    agents.command = std::move(theirs);
    coordinators.command = std::move(own);
    const std::string text = difference(agents, coordinators).value().to_agent;
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(told({"train", "--seed=3", "--bf16"}, {"train", "--seed", "3", "--bf16"}),
            "an option is written '--seed=3' on this host and '--seed 3' there; give all hosts the "
            "same");
  EXPECT_EQ(told({"train", "--seed", "3"}, {"train", "--seed=3"}),
            "an option is written '--seed 3' on this host and '--seed=3' there; give all hosts the "
            "same");
  EXPECT_EQ(told({"train", "--seed=3"}, {"train", "--seed", "4"}),
            "--seed is '3' on this host and '4' there; give all hosts the same");
  EXPECT_EQ(told({"train", "--seed", "3", "--seed", "3"}, {"train", "--seed", "3"}),
            "--seed is given twice on this host and once there; give all hosts the same");
  EXPECT_EQ(told({"train", "--seed=3", "--bf16"}, {"train", "--seed=3", "--seed=3", "--bf16"}),
            "--seed is given once on this host and twice there; give all hosts the same");
}

TEST(AgreedFacts, AnotherOrderOfTheSameOptionsIsCalledSo) {
  const auto told = [](std::vector<std::string> theirs, std::vector<std::string> own) {
    AgreedFacts agents = kOwn, coordinators = kOwn;
    agents.command = std::move(theirs);
    coordinators.command = std::move(own);
    const Refusal refusal = difference(agents, coordinators).value();
    return refusal.to_agent.substr(refusal.to_agent.find(": ") + 2) + " | " +
           refusal.to_coordinator.substr(refusal.to_coordinator.find(": ") + 2);
  };
  EXPECT_EQ(told({"train", "--bf16", "--zero", "3"}, {"train", "--zero", "3", "--bf16"}),
            "its options are the same in another order, first '--bf16' on this host and '--zero' "
            "there; give all hosts the same | its options are the same in another order, first "
            "'--bf16' there and '--zero' on this host; give all hosts the same");
  EXPECT_EQ(told({"train", "--a", "1", "--b", "2"}, {"train", "--b", "1", "--a", "2"}),
            "what follows 'train' is '--a' on this host and '--b' there; give all hosts the same | "
            "what follows 'train' is '--a' there and '--b' on this host; give all hosts the same")
      << "their values differ";
  EXPECT_EQ(told({"train", "--a", "-1", "--b", "-2"}, {"train", "--a", "-2", "--b", "-1"}),
            "--a is '-1' on this host and '-2' there; give all hosts the same | --a is '-1' there "
            "and '-2' on this host; give all hosts the same")
      << "a number below 0 is a value";
}

TEST(AgreedFacts, OptionsOfMlaunchAreComparedOneByOne) {
  AgreedFacts other = kOwn;
  other.options[2].value = "30";
  EXPECT_EQ(difference(other, kOwn).value().to_agent,
            "this host was told --rejoin 30, the coordinator 60: give all of them the same");
  other = kOwn;
  other.options[1].value = "1:4";
  EXPECT_EQ(difference(other, kOwn).value().to_agent,
            "this host was told --elastic 1:4, the coordinator none: give all of them the same");
  EXPECT_EQ(difference(kOwn, other).value().to_coordinator,
            "it was told no --elastic, this host 1:4: give all of them the same");
  other = kOwn;
  other.options.push_back({"--another", "1"});
  EXPECT_TRUE(difference(other, kOwn)) << "that only the agent knows";
}

}  // namespace
}  // namespace strata::launcher
