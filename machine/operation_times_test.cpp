#include "machine/operation_times.h"

#include <gtest/gtest.h>
#include <cmath>
#include <vector>

#include "machine/demand.h"

namespace strata::machine {
namespace {

TEST(OperationTimes, TheLastMeasurementOfAKindCounts) {
  OperationTimes times({{7, "linear", Resource::device, DType::f32, 100, 50},
                        {3, "norm", Resource::device, DType::f32, 10, 10}});
  EXPECT_EQ(times.find(7), 100);
  EXPECT_EQ(times.find(8), std::nullopt);
  times.merge(OperationTimes({{7, "linear", Resource::device, DType::f32, 80, 50}}));
  EXPECT_EQ(times.find(7), 80);
  EXPECT_EQ(times.find(3), 10);
  EXPECT_EQ(times.all().size(), 2U);
}

TEST(OperationTimes, OtherShapesOfFewKindsAreAsSlowAsMostOfTheMeasuredTime) {
  const OperationTimes times({{1, "linear", Resource::device, DType::f32, 1000, 500},
                              {2, "linear", Resource::device, DType::f32, 10, 1},
                              {3, "linear", Resource::device, DType::f32, 800, 400},
                              {4, "linear", Resource::device, DType::bf16, 300, 100}});
  const auto foreseen = [&](std::string_view operation, Resource resource, DType type) {
    return times.foreseen_ns(operation, resource, type, {1e6, 1e3}, 100);
  };
  EXPECT_DOUBLE_EQ(foreseen("linear", Resource::device, DType::f32), 200);
  EXPECT_DOUBLE_EQ(foreseen("linear", Resource::device, DType::bf16), 300);
  EXPECT_DOUBLE_EQ(foreseen("norm", Resource::device, DType::f32), 100);
  EXPECT_DOUBLE_EQ(foreseen("linear", Resource::host, DType::f32), 100);
}

TEST(OperationTimes, AnUpdateThatWasNotMeasuredIsAsSlowAsTheHostsOthers) {
  const OperationTimes times({{1, "adamw", Resource::host, DType::f32, 1000, 500},
                              {2, "lion", Resource::host, DType::f32, 30, 10},
                              {3, "norm", Resource::device, DType::f32, 9000, 1000}});
  const auto foreseen = [&](Resource resource) {
    return times.foreseen_ns("adamw_bf16", resource, DType::bf16, {1e6, 1e3}, 100);
  };
  EXPECT_DOUBLE_EQ(foreseen(Resource::host), 200);
  EXPECT_DOUBLE_EQ(foreseen(Resource::device), 100);
}

TEST(OperationTimes, OtherShapesOfManyKindsFollowTheLawOfTheirOperation) {
  const OperationLaw law{2000, 1e-3, 0.2};  // ns, per FLOP and per byte
  std::vector<OperationTime> measured;
  for (const Work& work : {Work{1e6, 1e4}, {1e9, 1e5}, {4e6, 8e6}, {7e8, 3e7}, {2e7, 5e4}})
    measured.push_back({measured.size() + 1, "linear", Resource::device, DType::f32,
                        std::llround(law.ns(work)), 1, work});
  const OperationTimes times(measured);
  const Work other{3e8, 2e6};
  EXPECT_NEAR(times.foreseen_ns("linear", Resource::device, DType::f32, other, 1), law.ns(other),
              0.01 * law.ns(other));
  EXPECT_DOUBLE_EQ(times.foreseen_ns("linear", Resource::device, DType::bf16, other, 1), 1);
}

TEST(OperationTimes, ALawPromisesNoRateThatNeitherAMeasurementNorTheMachineHas) {
  const OperationLaw law{10'000, 1e-3, 0};  // short kinds are mostly the fixed part
  std::vector<OperationTime> measured;
  for (const double flops : {1e6, 2e6, 4e6, 8e6, 16e6})
    measured.push_back({measured.size() + 1,
                        "linear",
                        Resource::device,
                        DType::f32,
                        std::llround(law.ns({flops, 0})),
                        1,
                        {flops, 0}});
  const OperationTimes times(measured);
  const auto foreseen = [&](double guess_ns) {
    return times.foreseen_ns("linear", Resource::device, DType::f32, {1e9, 0}, guess_ns);
  };
  const double by_law = law.ns({1e9, 0}), by_fastest_kind = 1e9 * (26'000 / 16e6);
  EXPECT_NEAR(foreseen(1e6), by_law, 0.01 * by_law);  // the machine is as fast as the law
  EXPECT_DOUBLE_EQ(foreseen(1.2e6), 1.2e6);
  EXPECT_NEAR(foreseen(9e6), by_fastest_kind, 1e-9 * by_fastest_kind);
}

TEST(OperationTimes, ForeseenTimesAreMeasuredOnes) {
  Machine machine = cpu_machine(2);
  const Demand demand{.flops = 1e9, .bytes = 1e6, .operation = "linear", .signature = 5};
  const std::int64_t guess = foreseen_ns(machine, demand);
  machine.times = OperationTimes({{5, "linear", Resource::device, DType::f32, 12345, guess}});
  EXPECT_EQ(foreseen_ns(machine, demand), 12345);
  Demand other = demand;
  other.signature = 6;
  machine.times = OperationTimes({{5, "linear", Resource::device, DType::f32, 3 * guess, guess}});
  EXPECT_NEAR(static_cast<double>(foreseen_ns(machine, other)), 3.0 * static_cast<double>(guess),
              0.01 * static_cast<double>(guess));
  machine.times = OperationTimes({{5, "linear", Resource::device, DType::f32, 1 << 30, 1}});
  EXPECT_EQ(foreseen_ns(machine, other), 3600LL * 1'000'000'000) << "no longer than an hour";
  Demand unknown = demand;
  unknown.signature = 0;  // an instruction that nobody has named
  unknown.operation = "";
  EXPECT_EQ(foreseen_ns(machine, unknown), guess);
}

}  // namespace
}  // namespace strata::machine
