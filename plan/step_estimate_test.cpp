#include "plan/step_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/alternatives.h"
#include "plan/testing/small_training.h"

namespace strata::plan {
namespace {

/// A model of many layers, estimated from a few of them, and as a whole.
class FewLayers : public testing::TestWithParam<int> {
 protected:
  static constexpr auto kBackend = kernels::DeviceCapabilities::Backend::cuda;

  [[nodiscard]] static machine::Machine gpu() {
    kernels::DeviceCapabilities capabilities;
    capabilities.backend = kBackend;
    return machine::typical_machine(capabilities);
  }
  [[nodiscard]] static runtime::Plan frame() {
    runtime::Plan plan = small_frame(GetParam());
    plan.backend = kBackend;
    return plan;
  }
  [[nodiscard]] std::vector<Choices> some_alternatives() const {
    std::vector<Choices> some;
    const std::vector<Choices> all = alternatives(asked_, {}, frame_, true);
    for (std::size_t i = 0; i < all.size(); i += 7)
      for (const double part : {0.0, 0.3125, 0.5, 0.875, 1.0}) {
        some.push_back(all[i]);
        set_again_part(some.back(), part);
      }
    return some;
  }

  compile::TrainingModel model_ = small_training(24);
  machine::Machine machine_ = gpu();
  runtime::Plan frame_ = frame();
  Choices asked_{.micro_batch = 4, .micro_steps = 2};
  Search search_{model_, frame_, machine_, {frame_.mesh, {}}};
  StepEstimates few_{search_, asked_}, whole_{search_, asked_, false};
};

MATCHER_P2(IsWithin, part, of, "") {
  return std::abs(static_cast<double>(arg) - static_cast<double>(of)) <=
         part * static_cast<double>(of);
}

TEST_P(FewLayers, GuessTheWhole) {
  for (const Choices& choices : some_alternatives()) {
    if (!few_.problems(choices).empty()) continue;
    const StepEstimate few = few_.guess(choices), whole = whole_.guess(choices);
    ASSERT_THAT(few.needs.device, IsWithin(0.01, whole.needs.device));
    ASSERT_THAT(few.needs.host, IsWithin(0.01, whole.needs.host));
    ASSERT_EQ(few.needs.disk, whole.needs.disk);
    ASSERT_THAT(few.seconds, IsWithin(0.02, whole.seconds));
  }
}

TEST_P(FewLayers, BoundTheWhole) {
  for (const double part : {0.0, 1.0})
    for (const Home home : {Home::device, Home::host, Home::disk}) {
      Choices choices = asked_;
      choices.optimizer = choices.parameters = home;
      set_again_part(choices, part);
      const auto few = few_.bound(choices), whole = whole_.bound(choices);
      ASSERT_EQ(few.has_value(), whole.has_value());
      if (!few) continue;
      ASSERT_THAT(few->needs.device, IsWithin(0.01, whole->needs.device));
      ASSERT_THAT(few->needs.host, IsWithin(0.01, whole->needs.host));
      ASSERT_EQ(few->needs.disk, whole->needs.disk);
      ASSERT_THAT(few->seconds, IsWithin(0.02, whole->seconds));
    }
}

TEST_P(FewLayers, AreLessWork) {
  static_cast<void>(few_.guess(asked_));
  static_cast<void>(whole_.guess(asked_));
  EXPECT_LT(few_.work(), 0.6 * static_cast<double>(whole_.work()));
}

TEST_P(FewLayers, AreNotTakenWhereActionsNameLayers) {
  asked_.actions = {{1, 1, {{"0.norm", runtime::SavedAction::recompute}}}};
  StepEstimates few(search_, asked_), whole(search_, asked_, false);
  EXPECT_EQ(few.guess(asked_).needs.device, whole.guess(asked_).needs.device);
  EXPECT_EQ(few.work(), whole.work());
}

INSTANTIATE_TEST_SUITE_P(OfRanks, FewLayers, testing::Values(1, 4));

}  // namespace
}  // namespace strata::plan
