#include "kernels/ops/lr_schedule.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "kernels/ops/learning_rate.h"

namespace strata::kernels {
namespace {

using Points = std::vector<std::pair<std::int64_t, double>>;

/// Compares with points printed by DeepSpeed's and transformers' own classes: the rate of the step
/// that follows `first` scheduler steps. The optimizer's rate is 3e-4 throughout.
void expect_points(LearningRateSchedule schedule, const Points& points) {
  schedule.base = 3e-4;
  for (const auto& [steps, rate] : points)
    EXPECT_NEAR(learning_rate(schedule, steps), rate, 1e-14) << "after " << steps << " steps";
}

TEST(LearningRate, ConstantWithAndWithoutWarmup) {
  expect_points({}, {{0, 3e-4}, {1, 3e-4}, {1000, 3e-4}});
  expect_points({.warmup_steps = 10}, {{0, 0}, {1, 3e-5}, {9, 2.7e-4}, {10, 3e-4}, {11, 3e-4}});
}

TEST(LearningRate, LinearOfTransformers) {
  expect_points({.kind = ScheduleKind::linear, .warmup_steps = 10, .total_steps = 100},
                {{0, 0},
                 {1, 2.9999999999999997e-05},
                 {9, 0.00027},
                 {10, 0.00029999999999999997},
                 {11, 0.00029666666666666665},
                 {50, 0.00016666666666666666},
                 {99, 3.3333333333333333e-06},
                 {100, 0},
                 {120, 0}});
}

TEST(LearningRate, CosineOfTransformers) {
  LearningRateSchedule cosine{.kind = ScheduleKind::cosine, .warmup_steps = 10, .total_steps = 100};
  expect_points(cosine, {{0, 0},
                         {9, 0.00027},
                         {10, 0.00029999999999999997},
                         {11, 0.00029990862405286433},
                         {50, 0.00017604722665003956},
                         {99, 9.137594713563568e-08},
                         {100, 0},
                         {150, 0}});
  cosine.min_ratio = 0.1;
  expect_points(cosine, {{0, 0},
                         {9, 0.00027},
                         {11, 0.00029991776164757793},
                         {50, 0.0001884425039850356},
                         {99, 3.008223835242207e-05},
                         {100, 3e-5}});
}

TEST(LearningRate, CosineOfSeveralWavesRisesAgain) {
  expect_points(
      {.kind = ScheduleKind::cosine, .warmup_steps = 10, .total_steps = 100, .cycles = 1.5},
      {{11, 0.00029917828430524096},
       {25, 0.00015},
       {40, 0},
       {50, 7.5e-05},
       {69, 0.00029917828430524096},
       {70, 0.0003},
       {85, 0.00015},
       {99, 8.217156947589898e-07}});
  expect_points({.kind = ScheduleKind::cosine, .total_steps = 100, .min_ratio = 0.25, .cycles = 1},
                {{0, 0.0003}, {25, 0.0001875}, {50, 7.5e-05}, {70, 0.00015273558813281836}});
}

TEST(LearningRate, CosineAfterAWarmupThatBeginsAboveZero) {
  LearningRateSchedule cosine{.kind = ScheduleKind::cosine_warmup,
                              .warmup_steps = 10,
                              .total_steps = 100,
                              .min_ratio = 0.1};
  expect_points(cosine, {{0, 3e-05},
                         {5, 0.00018},
                         {9, 0.0003},
                         {10, 0.00029991776164757793},
                         {50, 0.00018378836862960882},
                         {99, 3e-05}});
  cosine.warmup_lr_rate = 0.05;
  expect_points(
      cosine,
      {{0, 1.5e-05}, {1, 4.6666666666666665e-05}, {9, 0.0003}, {50, 0.00018378836862960882}});
}

TEST(LearningRate, CosineWithRestarts) {
  expect_points(
      {.kind = ScheduleKind::cosine_restarts, .warmup_steps = 10, .total_steps = 100, .cycles = 3},
      {{5, 0.00015},
       {10, 0.0003},
       {11, 0.00029917828430524096},
       {25, 0.00015},
       {40, 0.0003},
       {69, 8.217156947589898e-07},
       {70, 0.0003},
       {99, 8.217156947589898e-07},
       {100, 0}});
}

TEST(LearningRate, Polynomial) {
  expect_points({.kind = ScheduleKind::polynomial,
                 .minimum = 1e-5,
                 .warmup_steps = 10,
                 .total_steps = 100,
                 .power = 2},
                {{1, 3e-05},
                 {10, 0.0003},
                 {11, 0.0002935913580246914},
                 {50, 9.950617283950617e-05},
                 {99, 1.0035802469135803e-05},
                 {100, 1e-05}});
}

TEST(LearningRate, InverseSqrt) {
  LearningRateSchedule falling{.kind = ScheduleKind::inverse_sqrt, .warmup_steps = 10};
  expect_points(falling, {{5, 0.00015}, {10, 0.0003}, {40, 0.00015}, {99, 9.534625892455922e-05}});
  falling.timescale = 40;
  expect_points(falling, {{10, 0.0003}, {50, 0.00021213203435596422}});
  falling.warmup_steps = falling.timescale = 0;
  expect_points(falling, {{0, 0.0003}, {50, 0.0002992528008322899}});
}

TEST(LearningRate, WarmupStableDecay) {
  LearningRateSchedule trapezoid{.kind = ScheduleKind::warmup_stable_decay,
                                 .warmup_steps = 10,
                                 .min_ratio = 0.1,
                                 .decay_steps = 30,
                                 .stable_steps = 20};
  expect_points(trapezoid, {{0, 3e-05},
                            {1, 5.7e-05},
                            {10, 0.0003},
                            {25, 0.0003},
                            {40, 0.0002325},
                            {50, 9.75e-05},
                            {69, 3e-05}});
  trapezoid.min_ratio = 0;
  trapezoid.stable_steps = 60;
  trapezoid.warmup_shape = RampShape::cosine;
  trapezoid.decay_shape = RampShape::linear;
  expect_points(trapezoid, {{1, 7.34152255572697e-06}, {70, 0.0003}, {71, 0.00029}, {99, 1e-05}});
  trapezoid.min_ratio = 0.05;
  trapezoid.warmup_shape = trapezoid.decay_shape = RampShape::one_minus_sqrt;
  expect_points(trapezoid, {{0, 1.5e-05},
                            {5, 9.847456736183393e-05},
                            {71, 0.0002479663570370092},
                            {99, 1.979025712870012e-05}});
}

TEST(LearningRate, WarmupStartsWithTwoStepsAtTheMinimum) {
  LearningRateSchedule warmup{.kind = ScheduleKind::warmup,
                              .minimum = 1e-5,
                              .maximum = 1e-3,
                              .warmup_steps = 10,
                              .logarithmic = true};
  expect_points(warmup, {{0, 1e-05},
                         {1, 1e-05},
                         {2, 0.00030801969570734138},
                         {5, 0.00070198030429265851},
                         {9, 0.00095470008434493149},
                         {10, 0.0009999999999999998},
                         {11, 0.001},
                         {50, 0.001}});
  warmup.logarithmic = false;
  expect_points(warmup, {{0, 1e-05},
                         {1, 1e-05},
                         {2, 0.000109},
                         {5, 0.000406},
                         {9, 0.000802},
                         {10, 0.000901},
                         {11, 0.001},
                         {50, 0.001}});
}

TEST(LearningRate, WarmupOfOneStepCountsAsTwo) {
  expect_points({.kind = ScheduleKind::warmup, .minimum = 0, .maximum = 1e-3, .warmup_steps = 1},
                {{0, 0}, {1, 0}, {2, 0.0005}, {3, 0.001}, {4, 0.001}});
}

TEST(LearningRate, WarmupDecay) {
  LearningRateSchedule decay{.kind = ScheduleKind::warmup_decay,
                             .minimum = 0,
                             .maximum = 1e-3,
                             .warmup_steps = 10,
                             .total_steps = 100};
  expect_points(decay, {{0, 0},
                        {1, 0},
                        {2, 0.0001},
                        {10, 0.0009},
                        {11, 0.001},
                        {12, 0.00098888888888888898},
                        {50, 0.00056666666666666671},
                        {99, 2.2222222222222223e-05},
                        {100, 1.1111111111111112e-05},
                        {101, 0},
                        {150, 0}});
  decay.logarithmic = true;
  decay.minimum = 1e-6;
  expect_points(decay, {{0, 1e-6},
                        {1, 1e-6},
                        {2, 0.0003017289656683172},
                        {10, 0.001},
                        {12, 0.0009889},
                        {50, 0.0005671},
                        {101, 1e-6}});
}

TEST(LearningRate, WarmupCosine) {
  expect_points({.kind = ScheduleKind::warmup_cosine,
                 .warmup_steps = 10,
                 .total_steps = 100,
                 .warmup_min_ratio = 0.1,
                 .min_ratio = 0.01},
                {{0, 0},
                 {1, 2.9999999999999997e-05},
                 {2, 5.6999999999999996e-05},
                 {10, 0.00027299999999999997},
                 {11, 0.00029990953781233569},
                 {12, 0.00029963826146358388},
                 {50, 0.00017728675438353917},
                 {99, 3.0904621876642789e-06},
                 {100, 2.9999999999999997e-06},
                 {101, 2.9999999999999997e-06},
                 {150, 2.9999999999999997e-06}});
  expect_points({.kind = ScheduleKind::warmup_cosine,
                 .warmup_steps = 10,
                 .logarithmic = true,
                 .total_steps = 100,
                 .min_ratio = 1e-4},
                {{0, 0},
                 {1, 0},
                 {2, 9.0308998699194337e-05},
                 {5, 0.00020969100130080557},
                 {11, 0.00029990863319045909},
                 {60, 0.00012397037807262545}});
}

TEST(LearningRate, OneCycle) {
  LearningRateSchedule cycle{.kind = ScheduleKind::one_cycle,
                             .minimum = 1e-4,
                             .maximum = 1e-3,
                             .first_steps = 10,
                             .second_steps = 20,
                             .rate = 0.5,
                             .decay_steps = 5};
  expect_points(cycle, {{0, 0.0001},
                        {1, 0.00019},
                        {5, 0.00055},
                        {10, 0.001},
                        {11, 0.000955},
                        {12, 0.00091},
                        {20, 0.00055},
                        {30, 0.0001},
                        {31, 9.0909090909090904e-05},
                        {35, 6.666666666666667e-05},
                        {60, 2.5000000000000001e-05}});
  cycle.first_stairs = cycle.second_stairs = 4;
  expect_points(cycle, {{0, 0.0001},
                        {1, 0.0001},
                        {5, 0.00055},
                        {10, 0.001},
                        {11, 0.000775},
                        {12, 0.000775},
                        {20, 0.00055},
                        {30, 0.0001},
                        {31, 9.0909090909090904e-05}});
  cycle.decay_steps = 0;
  expect_points(cycle, {{31, 1e-4}, {60, 1e-4}});
}

TEST(LearningRate, RangeTest) {
  LearningRateSchedule range{
      .kind = ScheduleKind::range_test, .minimum = 1e-3, .first_steps = 5, .rate = 2};
  expect_points(range,
                {{0, 0.001}, {1, 0.0014}, {4, 0.0026}, {5, 0.003}, {7, 0.0038}, {10, 0.005}});
  range.first_stairs = 1;
  expect_points(range, {{0, 0.001}, {1, 0.001}, {4, 0.001}, {5, 0.003}, {7, 0.003}, {10, 0.005}});
}

TEST(LearningRate, AttributesCarryEveryField) {
  const LearningRateSchedule schedule{.kind = ScheduleKind::one_cycle,
                                      .base = 1,
                                      .minimum = 2,
                                      .maximum = 3,
                                      .warmup_steps = 4,
                                      .logarithmic = true,
                                      .total_steps = 5,
                                      .warmup_min_ratio = 6,
                                      .min_ratio = 7,
                                      .first_steps = 8,
                                      .second_steps = 9,
                                      .first_stairs = 10,
                                      .second_stairs = 11,
                                      .rate = 12,
                                      .decay_steps = 13,
                                      .stable_steps = -14,
                                      .warmup_shape = RampShape::one_minus_sqrt,
                                      .decay_shape = RampShape::linear,
                                      .cycles = 15,
                                      .power = 16,
                                      .timescale = 17,
                                      .warmup_lr_rate = 18};
  Attributes attributes;
  set_schedule(attributes, schedule);
  EXPECT_EQ(schedule_from(attributes), schedule);
  EXPECT_EQ(schedule_from({}), LearningRateSchedule{});
}

}  // namespace
}  // namespace strata::kernels
