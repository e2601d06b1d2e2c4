// Tests what a recorded run says about its instructions, and that a replay of it is the same run.
#include "runtime/simulator/measured_times.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "runtime/simulator/replay.h"
#include "runtime/simulator/simulated_ranks.h"
#include "runtime/testing/hand_made.h"

namespace strata::runtime {
namespace {

/// Computes, gathers what the next instruction reads, and takes a result to the host.
Program two_queues() {
  Instruction sum = hand_made(Queue::communication, "sum", {0});
  sum.collective = comm::integer_sum(8, 2);
  return hand_made("p", {hand_made(Queue::compute, "a"), sum, hand_made(Queue::compute, "b"),
                         hand_made(Queue::compute, "c", {1}, bit(Queue::download)),
                         hand_made(Queue::download, "down", {3})});
}

RecordedRun recorded(const Program& program, std::vector<std::int64_t> begin,
                     std::vector<std::int64_t> end) {
  return {&program, 0, 0, std::move(begin), std::move(end)};
}

TEST(MeasuredTimes, AnInstructionTakesFromWhenItCouldBeginToItsEnd) {
  const Program program = two_queues();
  // `c` begins 5 late, which is its own; `sum` of rank 0 stands there until rank 1 comes at 30.
  const Recording first{recorded(program, {2, 10, 10, 45, 60}, {10, 40, 25, 60, 70})};
  const Recording second{recorded(program, {0, 30, 30, 42, 50}, {30, 42, 35, 50, 51})};
  const auto ns = durations({first, second});
  EXPECT_EQ(ns[0][0], (std::vector<std::int64_t>{10, 10, 15, 20, 10}));
  EXPECT_EQ(ns[1][0], (std::vector<std::int64_t>{30, 12, 5, 8, 1}));
}

TEST(MeasuredTimes, WhatARunWaitsForAtTheBorderDoesNotCount) {
  const Program program = hand_made("p", {hand_made(Queue::compute, "a", {}, bit(Queue::download)),
                                          hand_made(Queue::download, "down", {0})});
  const auto ns =
      durations({{recorded(program, {0, 10}, {10, 60}), recorded(program, {61, 75}, {75, 90})}});
  EXPECT_EQ(ns[0][1], (std::vector<std::int64_t>{15, 15}));
}

TEST(MeasuredTimes, CountedFromItsBeginAnInstructionHasNotWaitedForAThread) {
  const Program program = two_queues();
  const Recording first{recorded(program, {2, 10, 10, 45, 60}, {10, 40, 25, 60, 70})};
  const Recording second{recorded(program, {0, 30, 30, 42, 50}, {30, 42, 35, 50, 51})};
  const auto ns = durations({first, second}, CountedFrom::begin);
  EXPECT_EQ(ns[0][0], (std::vector<std::int64_t>{8, 10, 15, 15, 10}));
  EXPECT_EQ(ns[1][0], (std::vector<std::int64_t>{30, 12, 5, 8, 1}));
}

TEST(MeasuredTimes, TransfersThatEndBeforeAnEarlierOneAreToldWithIt) {
  const Program program =
      hand_made("p", {hand_made(Queue::disk_read, "a"), hand_made(Queue::disk_read, "b"),
                      hand_made(Queue::compute, "c", {1})});
  const Recording runs{recorded(program, {0, 1, 31}, {30, 20, 40})};
  EXPECT_EQ(durations({runs})[0][0], (std::vector<std::int64_t>{30, 1, 10}));
}

/// Returns the measured and the simulated end of each run of one rank.
std::vector<std::pair<std::int64_t, std::int64_t>> ends(const std::vector<ReplayedRun>& runs) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const ReplayedRun& run : runs) all.emplace_back(run.measured_ns, run.simulated_ns);
  return all;
}

using Ends = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST(Replay, ARankLeavesACollectiveWhenItDid) {
  const Program program = two_queues();
  // Rank 0 leaves `sum` 40 later than rank 1, and nothing of rank 1 waits for it.
  const Recording first{recorded(program, {0, 10, 80, 90, 92}, {10, 80, 90, 92, 95})};
  const Recording second{recorded(program, {0, 10, 40, 40, 50}, {10, 40, 50, 60, 70})};
  const auto runs = replay(comm::data_mesh(2), {first, second});
  EXPECT_EQ(ends(runs[0]), (Ends{{95, 95}}));
  EXPECT_EQ(ends(runs[1]), (Ends{{70, 70}}));
}

TEST(Replay, WhatTheHostTookToStartARunIsInIt) {
  const Program program = hand_made("p", {hand_made(Queue::compute, "a")});
  RecordedRun late = recorded(program, {150}, {170});
  late.started_ns = 140;
  EXPECT_EQ(ends(replay(comm::data_mesh(1), {{recorded(program, {0}, {100}), late}})[0]),
            (Ends{{100, 100}, {170, 170}}));
  EXPECT_EQ(ends(replay(comm::data_mesh(1), {{recorded(program, {0}, {100}), late}},
                        CountedFrom::begin)[0]),
            (Ends{{100, 100}, {170, 120}}));
}

TEST(Replay, RanksAreAsFarApartAsTheyStarted) {
  const Program program = hand_made("p", {hand_made(Queue::compute, "a")});
  RecordedRun late = recorded(program, {60}, {90});
  late.started_ns = 50;
  const auto runs = replay(comm::data_mesh(2), {{recorded(program, {0}, {10})}, {late}});
  EXPECT_EQ(ends(runs[0]), (Ends{{10, 10}}));
  EXPECT_EQ(ends(runs[1]), (Ends{{90, 90}}));
}

TEST(MeasuredTimes, AreMeansOverTheStepsThatCount) {
  const Program program = hand_made("p", {hand_made(Queue::compute, "a")});
  Recording runs;
  std::int64_t at = 0;
  for (const std::int64_t ns : {1000, 20, 40}) {
    runs.push_back({&program, std::ssize(runs), 0, {at}, {at + ns}});
    at += ns;
  }
  const auto times = mean_times({runs}, 1);
  EXPECT_EQ(times[0].work_of(program, 0).alone_ns, 30);
}

TEST(MeasuredTimes, RefuseWhatNobodyMeasured) {
  const Program program = two_queues();
  MeasuredTimes times;
  times.set(program, 0, 7);
  EXPECT_EQ(times.work_of(program, 0).alone_ns, 7);
  try {
    (void)times.work_of(program, 2);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "nobody measured instruction 2 ('b') of Program 'p'; measure a run of the same "
                 "Programs");
  }
  const HandMadeTimes otherwise({{"d", {9}}});
  const Program other = hand_made("other", {hand_made(Queue::compute, "d")});
  EXPECT_EQ(MeasuredTimes(&otherwise).work_of(other, 0).alone_ns, 9);
}

TEST(MeasuredTimes, RefuseRanksThatMetADifferentNumberOfTimes) {
  const Program program = two_queues();
  const RecordedRun run = recorded(program, {2, 10, 10, 45, 60}, {10, 40, 25, 60, 70});
  EXPECT_THROW((void)durations({{run, run}, {run}}), InvalidArgument);
}

/// Times that differ from call to call.
class RandomTimes final : public InstructionTimes {
 public:
  [[nodiscard]] InstructionWork work_of(const Program&, int) const override {
    return {1 + static_cast<std::int64_t>(random_() % 100), {}};
  }

 private:
  mutable std::mt19937_64 random_{3};
};

/// Records by the virtual clock.
class VirtualRecorder final : public Observer {
 public:
  void starting(const Program& program, std::int64_t step) override {
    const std::size_t size = program.instructions.size();
    recording.push_back(
        {&program, step, 0, std::vector<std::int64_t>(size), std::vector<std::int64_t>(size)});
  }
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  void executed(const Program& program, int i, std::int64_t begin_ns,
                std::int64_t end_ns) override {
    const auto queue =
        static_cast<std::size_t>(program.instructions[static_cast<std::size_t>(i)].queue);
    std::int32_t& last = last_[queue];
    if (i <= last) ++run_[queue];
    last = i;
    RecordedRun& run = recording[run_[queue]];
    run.begin_ns[static_cast<std::size_t>(i)] = begin_ns;
    run.end_ns[static_cast<std::size_t>(i)] = end_ns;
  }
  Recording recording;

 private:
  std::array<std::int32_t, kQueues> last_ = [] {
    std::array<std::int32_t, kQueues> none{};
    none.fill(-1);
    return none;
  }();
  std::array<std::size_t, kQueues> run_{};
};

TEST(MeasuredTimes, AReplayIsTheRunThatWasRecorded) {
  const RandomTimes times;
  SimulatedRanks ranks(comm::data_mesh(3), 3, times);
  std::array<VirtualRecorder, 3> recorders;
  constexpr int kRuns = 20;
  for (int r = 0; r < 3; ++r) {
    ranks.rank(r).add_observer(recorders[static_cast<std::size_t>(r)]);
    for (int k = 0; k < kRuns; ++k) ranks.rank(r).load(two_queues());
  }
  for (int k = 0; k < kRuns; ++k)
    for (int r = 0; r < 3; ++r) ranks.rank(r).start(k, k);
  for (int r = 0; r < 3; ++r) ranks.rank(r).wait_all();
  const auto again = replay(
      comm::data_mesh(3), {recorders[0].recording, recorders[1].recording, recorders[2].recording});
  for (int r = 0; r < 3; ++r)
    for (int k = 0; k < kRuns; ++k) {
      const ReplayedRun& run = again[static_cast<std::size_t>(r)][static_cast<std::size_t>(k)];
      EXPECT_EQ(run.step, k);
      EXPECT_EQ(run.simulated_ns, ranks.rank(r).ended_ns(k)) << r << " " << k;
      EXPECT_EQ(run.measured_ns, run.simulated_ns) << r << " " << k;
    }
}

}  // namespace
}  // namespace strata::runtime
