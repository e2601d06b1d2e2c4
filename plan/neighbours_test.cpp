#include "plan/neighbours.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace strata::plan {
namespace {

runtime::Plan frame(int ranks, int virtual_ranks = 0) {
  runtime::Plan plan;
  plan.mesh = comm::data_mesh(ranks);
  plan.virtual_ranks = virtual_ranks;
  return plan;
}

/// Prints "2 3x2 norms": stage, micro-batch x micro-steps, what is recomputed.
std::string text(const std::vector<Choices>& all) {
  std::string text;
  for (const Choices& c : all)
    text += std::to_string(c.sharding.stage) + " " + std::to_string(c.micro_batch) + "x" +
            std::to_string(c.micro_steps) +
            std::array{"", " norms", " everything"}[static_cast<std::size_t>(c.again)] + ", ";
  return text;
}

/// Prints "hd-L": homes of optimizer state, parameters and activations; L: layer by layer.
std::string homes(const std::vector<Choices>& all) {
  std::string text;
  for (const Choices& c : all) {
    for (const Home home : {c.optimizer, c.parameters, c.activations})
      text += "-hd"[static_cast<std::size_t>(home)];
    text += c.layer_major ? "L " : " ";
  }
  return text;
}

TEST(Neighbours, StagesComeBeforeMicroBatchesAndTheseBeforeMakingAgain) {
  Choices asked;
  asked.sharding.stage = 2;
  asked.micro_batch = 6;
  asked.micro_steps = 2;
  EXPECT_EQ(text(cheapest_first(asked, frame(2))),
            "2 6x2, 3 6x2, 2 3x4, 3 3x4, 2 1x12, 3 1x12, "
            "2 6x2 norms, 3 6x2 norms, 2 3x4 norms, 3 3x4 norms, 2 1x12 norms, 3 1x12 norms, "
            "2 6x2 everything, 3 6x2 everything, 2 3x4 everything, 3 3x4 everything, "
            "2 1x12 everything, 3 1x12 everything, ");
  asked.again = Again::everything;
  asked.micro_batch = 1;
  EXPECT_EQ(text(cheapest_first(asked, frame(1))), "2 1x2 everything, ") << "nothing to shard";
  asked.again_part = 0.25;
  const std::vector<Choices> more = cheapest_first(asked, frame(1));
  ASSERT_EQ(more.size(), 2U);
  EXPECT_EQ(more[0], asked);
  EXPECT_EQ(more[1].again_part, 1);
}

TEST(Neighbours, StateLeavesTheDeviceStepByStep) {
  Choices asked;
  EXPECT_EQ(homes(further_homes(asked, frame(1), {})),
            "h-- h-- hh- hh- d-- d-- dh- dh- dd- dd- ddd ddd ");
  EXPECT_EQ(homes(further_homes(asked, frame(1), {.own_device = false})),
            "d-- d-- dd- dd- ddd ddd ")
      << "host memory is the device's";
  asked.optimizer = Home::disk;
  asked.micro_steps = 2;
  EXPECT_EQ(homes(further_homes(asked, frame(1), {.own_device = false})),
            "d-- d-- d--L dd- dd- dd-L ddd ddd dddL ");
  EXPECT_EQ(homes(further_homes(asked, frame(1, 2), {.own_device = false})),
            "d-- d-- dd- dd- ddd ddd ")
      << "virtual ranks exclude it";
  asked.optimizer = Home::host;
  asked.optimizer_part = 0.5;
  EXPECT_EQ(further_homes(asked, frame(1), {}).front().optimizer_part, 1)
      << "all of the state leaves the device before more kinds of it do";
  asked.optimizer_part = 1;
  EXPECT_EQ(homes(further_homes(asked, frame(1), {})).find("h-- "), std::string::npos)
      << "what was asked for is no neighbour";
}

TEST(Neighbours, NothingGoesFartherThanItMayUnlessItWasAskedTo) {
  Choices asked;
  EXPECT_EQ(homes(further_homes(asked, frame(1), {.farthest = Home::device})), "");
  EXPECT_EQ(homes(further_homes(asked, frame(1), {.farthest = Home::host})), "h-- h-- hh- hh- ");
  asked.optimizer = Home::disk;
  EXPECT_EQ(homes(further_homes(asked, frame(1), {.farthest = Home::host})), "d-- d-- dh- dh- ");
  EXPECT_EQ(homes(further_homes(asked, frame(1), {.own_device = false, .farthest = Home::device})),
            "d-- d-- ");
}

TEST(Neighbours, ActionsThatWereAskedForAloneDecideAboutSavedValues) {
  Choices asked;
  asked.actions = {{1, 1, {{"0.norm", runtime::SavedAction::recompute}}}};
  for (const auto& all : {cheapest_first(asked, frame(1)), further_homes(asked, frame(1), {})})
    for (const Choices& changed : all) {
      EXPECT_EQ(changed.actions, asked.actions);
      EXPECT_EQ(changed.again, Again::nothing);
      EXPECT_EQ(changed.activations, Home::device);
    }
}

TEST(Neighbours, AChangeIsTakenBackPartByPart) {
  Choices asked;
  asked.micro_batch = 4;
  asked.optimizer = Home::host;
  Choices changed = asked;
  for (const Part part : kParts) EXPECT_TRUE(with_less(part, changed, asked, true).empty());
  changed.sharding.stage = 2;
  changed.micro_batch = 1;
  changed.micro_steps = 4;
  changed.sums_away = true;
  EXPECT_FALSE(with_less(Part::sums, changed, asked, true).at(0).sums_away);
  changed.sums_away = false;
  changed.layer_major = true;
  changed.again = Again::everything;
  changed.optimizer = changed.parameters = Home::disk;
  EXPECT_EQ(homes(with_less(Part::parameters, changed, asked, true)), "d--L dh-L ");
  EXPECT_EQ(homes(with_less(Part::parameters, changed, asked, false)), "d--L ")
      << "host memory is the device's";
  EXPECT_EQ(homes(with_less(Part::optimizer, changed, asked, true)), "hd-L ");
  EXPECT_EQ(text(with_less(Part::micro_batch, changed, asked, true)),
            "2 4x1 everything, 2 2x2 everything, ");
  EXPECT_EQ(homes(with_less(Part::micro_batch, changed, asked, true)), "dd- dd-L ")
      << "one micro-step has one order";
  EXPECT_EQ(homes(with_less(Part::order, changed, asked, true)), "dd- ");
  EXPECT_EQ(text(with_less(Part::again, changed, asked, true)), "2 1x4, ");
  EXPECT_EQ(text(with_less(Part::stage, changed, asked, true)),
            "0 1x4 everything, 1 1x4 everything, ");
}

}  // namespace
}  // namespace strata::plan
