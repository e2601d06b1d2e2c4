#include "machine/operation_law.h"

#include <gtest/gtest.h>
#include <vector>

namespace strata::machine {
namespace {

constexpr double kLittle = 1e-6;

/// Returns the times that a law gives for work of many sizes and shapes.
std::vector<WorkTime> times_of(const OperationLaw& law) {
  std::vector<WorkTime> times;
  for (const double flops : {1e6, 3e7, 8e8, 5e9})
    for (const double bytes : {2e4, 7e5, 9e6}) {
      const Work work{flops, bytes};
      times.push_back({work, law.ns(work)});
    }
  return times;
}

void expect_near(const OperationLaw& found, const OperationLaw& law) {
  EXPECT_NEAR(found.fixed_ns, law.fixed_ns, kLittle * (1 + law.fixed_ns));
  EXPECT_NEAR(found.ns_per_flop, law.ns_per_flop, kLittle * law.ns_per_flop + 1e-12);
  EXPECT_NEAR(found.ns_per_byte, law.ns_per_byte, kLittle * law.ns_per_byte + 1e-12);
}

TEST(OperationLaw, FindsTheLawThatTimesFollow) {
  for (const OperationLaw& law :
       {OperationLaw{1000, 2e-3, 0.1}, OperationLaw{0, 2e-3, 0.1}, OperationLaw{500, 0, 0.4},
        OperationLaw{0, 5e-2, 0}, OperationLaw{12000, 0, 0}}) {
    const auto found = fit_law(times_of(law));
    ASSERT_TRUE(found);
    expect_near(*found, law);
  }
}

TEST(OperationLaw, NoPartIsNegative) {
  std::vector<WorkTime> times = times_of({0, 2e-3, 0.1});
  for (WorkTime& time : times) time.ns = 2e-3 * time.work.flops + 0.1 * time.work.bytes - 900;
  const auto found = fit_law(times);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fixed_ns, 0);
  EXPECT_GE(found->ns_per_flop, 0);
  EXPECT_GE(found->ns_per_byte, 0);
}

TEST(OperationLaw, WorkThatGoesInStepGivesOnePartForBoth) {
  std::vector<WorkTime> times;
  for (const double size : {1.0, 2.0, 5.0, 9.0})
    times.push_back({{1e6 * size, 4e3 * size}, 1e4 * size});
  const auto found = fit_law(times);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->ns({3e6, 12e3}), 3e4, 1);
}

TEST(OperationLaw, RelativeErrorsCount) {
  // One long kind that is 1 % off must not bend what short ones say.
  std::vector<WorkTime> times = times_of({0, 1e-3, 0});
  times.push_back({{1e12, 1e3}, 1.01e9});
  const auto found = fit_law(times);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->ns({1e7, 1e3}), 1e4, 1e2);
}

TEST(OperationLaw, LongerAndShorterTimesCountAlike) {
  // Kinds of the same work that take half and twice as long as a law: it lies between them.
  std::vector<WorkTime> times;
  for (const double flops : {1e6, 3e7, 8e8, 5e9})
    for (const double factor : {0.5, 2.0}) times.push_back({{flops, 0}, 1e-3 * flops * factor});
  const auto found = fit_law(times);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->ns({1e9, 0}), 1e6, 1e3);
}

TEST(OperationLaw, FewKindsGiveNone) {
  std::vector<WorkTime> times = times_of({1000, 2e-3, 0.1});
  times.resize(kLeastKindsOfLaw - 1);
  EXPECT_FALSE(fit_law(times));
  times.resize(kLeastKindsOfLaw + 2, WorkTime{{0, 0}, 50});  // of unknown work
  EXPECT_FALSE(fit_law(times));
}

}  // namespace
}  // namespace strata::machine
