// One rule of the simulator per test, on Programs small enough to check by hand.
#include "runtime/simulator/simulated_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "core/json.h"
#include "runtime/execute/profile.h"
#include "runtime/execute/trace.h"
#include "runtime/execute/usage_recorder.h"
#include "runtime/simulator/host_resources.h"
#include "runtime/testing/hand_made.h"

namespace strata::runtime {
namespace {

using Words = std::vector<std::string>;

/// "RUN LABEL BEGIN-END" of each instruction, in the order of their ends.
class Listing final : public Observer {
 public:
  void starting(const Program&, std::int64_t) override { lines.push_back("start"); }
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  void waited(const Program& program, int i, Queue on, std::int64_t ns) override {
    waits.push_back(label(program, i) + " for " + std::string(name_of(on)) + " " +
                    std::to_string(ns));
  }
  void executed(const Program& program, int i, std::int64_t begin, std::int64_t end) override {
    lines.push_back(label(program, i) + " " + std::to_string(begin) + "-" + std::to_string(end));
  }
  Words lines, waits;

 private:
  static std::string label(const Program& program, int i) {
    return program.instructions[static_cast<std::size_t>(i)].label;
  }
};

ResourceShare of(HostResource resource, double share) {
  return {static_cast<int>(resource), share};
}

Instruction meeting(std::string label, std::vector<std::int32_t> waits = {}) {
  Instruction in = hand_made(Queue::communication, std::move(label), std::move(waits));
  in.collective = comm::integer_sum(8, 2);
  return in;
}

/// One rank and what it tells.
class Alone {
 public:
  Alone(std::map<std::string, InstructionWork> work, std::vector<Program> programs)
      : times_(std::move(work)), ranks_(comm::data_mesh(1), 1, times_) {
    ranks_.rank(0).add_observer(listing_);
    for (Program& program : programs) rank().load(std::move(program));
  }
  SimulatedRank& rank() { return ranks_.rank(0); }
  /// Starts all Programs in their order and waits.
  Words run_all(int programs) {
    for (int handle = 0; handle < programs; ++handle) rank().start(handle, handle);
    rank().wait_all();
    return listing_.lines;
  }
  [[nodiscard]] const Words& waits() const { return listing_.waits; }
  [[nodiscard]] std::int64_t now_ns() const { return ranks_.now_ns(); }

 private:
  HandMadeTimes times_;
  SimulatedRanks ranks_;
  Listing listing_;
};

TEST(SimulatedRanks, QueuesRunSideBySideAndOneInstructionAtATime) {
  Alone alone({{"a", {10}}, {"b", {20}}, {"up", {15}}},
              {hand_made("p", {hand_made(Queue::compute, "a"), hand_made(Queue::upload, "up"),
                               hand_made(Queue::compute, "b")})});
  EXPECT_EQ(alone.run_all(1), (Words{"start", "a 0-10", "up 0-15", "b 10-30"}));
  EXPECT_EQ(alone.now_ns(), 30);
}

TEST(SimulatedRanks, AnInstructionWaitsForThoseItNames) {
  Alone alone({{"a", {10}}, {"b", {20}}, {"up", {15}}},
              {hand_made("p", {hand_made(Queue::upload, "up"), hand_made(Queue::compute, "a"),
                               hand_made(Queue::compute, "b", {0})})});
  EXPECT_EQ(alone.run_all(1), (Words{"start", "a 0-10", "up 0-15", "b 15-35"}));
  EXPECT_EQ(alone.waits(), (Words{"b for upload 5"}));
}

TEST(SimulatedRanks, ABorderWaitNeedsTheWholeQueueOfTheRunBefore) {
  const auto program = [](std::uint32_t border) {
    return hand_made("p", {hand_made(Queue::compute, "a", {}, border),
                           hand_made(Queue::upload, "up"), hand_made(Queue::upload, "up more")});
  };
  const std::map<std::string, InstructionWork> work{{"a", {10}}, {"up", {15}}, {"up more", {15}}};
  Alone free(work, {program(0), program(0)});
  EXPECT_EQ(free.run_all(2), (Words{"start", "start", "a 0-10", "up 0-15", "a 10-20",
                                    "up more 15-30", "up 30-45", "up more 45-60"}));
  EXPECT_EQ(free.waits(), Words{});
  Alone bound(work, {program(bit(Queue::upload)), program(bit(Queue::upload))});
  EXPECT_EQ(bound.run_all(2), (Words{"start", "start", "a 0-10", "up 0-15", "up more 15-30",
                                     "a 30-40", "up 30-45", "up more 45-60"}));
  EXPECT_EQ(bound.waits(), (Words{"a for upload 20"}));
}

TEST(SimulatedRanks, TwoProgramsAreUnderWayAtMost) {
  Alone alone({{"a", {10}}}, {hand_made("p", {hand_made(Queue::compute, "a")})});
  alone.rank().start(0, 0);
  alone.rank().start(0, 1);
  EXPECT_EQ(alone.now_ns(), 0);
  const RunNumber third = alone.rank().start(0, 2);
  EXPECT_EQ(alone.now_ns(), 10);
  alone.rank().wait(third);
  EXPECT_EQ(alone.now_ns(), 30);
  EXPECT_EQ(alone.rank().ended_ns(0), 10);
  EXPECT_EQ(alone.rank().ended_ns(third), 30);
}

TEST(SimulatedRanks, InputsAreReadWhenTheirCopiesHaveEnded) {
  Program program =
      hand_made("p", {hand_made(Queue::compute, "copy in"), hand_made(Queue::compute, "a")});
  program.values.emplace_back().role = Role::input;
  Operand& input = program.instructions[0].inputs.emplace_back();
  input.tier = Tier::pinned;
  input.value = 0;
  Alone alone({{"copy in", {10}}, {"a", {30}}}, {program});
  const RunNumber run = alone.rank().start(0, 0);
  alone.rank().wait_inputs_read(run);
  EXPECT_EQ(alone.now_ns(), 10);
}

TEST(SimulatedRanks, WhatSharesMemorySlowsOneAnotherDown) {
  const auto program = [] {
    return hand_made("p",
                     {hand_made(Queue::compute, "a"), hand_made(Queue::communication, "gather")});
  };
  const auto work = [](double a, double gather) {
    return std::map<std::string, InstructionWork>{
        {"a", {1000, {of(HostResource::host_memory, a)}}},
        {"gather", {1000, {of(HostResource::host_memory, gather)}}}};
  };
  EXPECT_EQ(Alone(work(0.5, 0.5), {program()}).run_all(1),
            (Words{"start", "a 0-1000", "gather 0-1000"}));
  // Both go on at 2/3 of their speed.
  EXPECT_EQ(Alone(work(1, 0.5), {program()}).run_all(1),
            (Words{"start", "a 0-1501", "gather 0-1501"}));
}

TEST(SimulatedRanks, TransfersOfADiskQueueFollowOneAnotherAndShareTheDriveWithTheOtherDirection) {
  Alone alone({{"r1", {100, {of(HostResource::disk, 1)}}},
               {"r2", {100, {of(HostResource::disk, 1)}}},
               {"w", {100, {of(HostResource::disk, 1)}}}},
              {hand_made("p", {hand_made(Queue::disk_read, "r1"), hand_made(Queue::disk_read, "r2"),
                               hand_made(Queue::disk_write, "w")})});
  EXPECT_EQ(alone.run_all(1), (Words{"start", "r1 0-200", "w 0-200", "r2 200-300"}));
}

TEST(SimulatedRanks, RanksMeetWhereTheLastOneCame) {
  const HandMadeTimes fast({{"a", {10}}, {"sum", {5}}, {"b", {1}}});
  const HandMadeTimes slow({{"a", {30}}, {"sum", {7}}, {"b", {1}}});
  SimulatedRanks ranks(comm::data_mesh(2), 2, {&fast, &slow});
  std::array<Listing, 2> listings;
  for (int r = 0; r < 2; ++r) {
    ranks.rank(r).add_observer(listings[static_cast<std::size_t>(r)]);
    ranks.rank(r).load(hand_made("p", {hand_made(Queue::compute, "a"), meeting("sum", {0}),
                                       hand_made(Queue::compute, "b", {1})}));
    ranks.rank(r).start(0, 0);
  }
  for (int r = 0; r < 2; ++r) ranks.rank(r).wait_all();
  EXPECT_EQ(listings[0].lines, (Words{"start", "a 0-10", "sum 10-37", "b 37-38"}));
  EXPECT_EQ(listings[1].lines, (Words{"start", "a 0-30", "sum 30-37", "b 37-38"}));
  EXPECT_EQ(listings[0].waits, (Words{"b for communication 27"}));
}

TEST(SimulatedRanks, RanksOfOneHostShareItsResourcesAndThoseOfTwoHostsDoNot) {
  const HandMadeTimes times({{"a", {100, {of(HostResource::host_memory, 1)}}},
                             {"up", {100, {of(HostResource::link_up, 1)}}}});
  const auto run = [&](int ranks_per_host) {
    SimulatedRanks ranks(comm::data_mesh(2), ranks_per_host, times);
    Listing listing;
    ranks.rank(1).add_observer(listing);
    for (int r = 0; r < 2; ++r) {
      ranks.rank(r).load(
          hand_made("p", {hand_made(Queue::compute, "a"), hand_made(Queue::upload, "up")}));
      ranks.rank(r).start(0, 0);
    }
    for (int r = 0; r < 2; ++r) ranks.rank(r).wait_all();
    return listing.lines;
  };
  // Each rank has a link of its own.
  EXPECT_EQ(run(1), (Words{"start", "a 0-100", "up 0-100"}));
  EXPECT_EQ(run(2), (Words{"start", "up 0-100", "a 0-200"}));
}

TEST(SimulatedRanks, RanksMeetAlongTheAxesOfTheCollectiveAlone) {
  comm::Mesh mesh;
  mesh.sizes = {2, 2, 1, 1, 1};  // 0 and 1 are neighbours along the tensor axis
  Instruction in = meeting("sum");
  const HandMadeTimes fast({{"sum", {10}}}), slow({{"sum", {25}}});
  for (const auto& [axes, ends] :
       {std::pair{comm::AxisSet(comm::MeshAxis::tensor), std::array{10, 10, 25, 25}},
        std::pair{comm::AxisSet(comm::MeshAxis::data), std::array{25, 25, 25, 25}}}) {
    in.collective->axes = axes;
    SimulatedRanks ranks(mesh, 4, {&fast, &fast, &slow, &slow});
    for (int r = 0; r < 4; ++r) {
      ranks.rank(r).load(hand_made("p", {in}));
      ranks.rank(r).start(0, 0);
    }
    for (int r = 0; r < 4; ++r) ranks.rank(r).wait_all();
    for (int r = 0; r < 4; ++r)
      EXPECT_EQ(ranks.rank(r).ended_ns(0), ends[static_cast<std::size_t>(r)])
          << comm::to_string(axes) << " " << r;
  }
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(SimulatedRanks, SayWhatEachRankWaitsForWhereNothingCanStart) {
  const HandMadeTimes times({{"a", {10}}, {"sum", {5}}, {"b", {1}}});
  SimulatedRanks ranks(comm::data_mesh(2), 2, times);
  ranks.rank(0).load(hand_made("p", {hand_made(Queue::compute, "a"), meeting("sum", {0}),
                                     hand_made(Queue::compute, "b", {1})}));
  ranks.rank(0).start(0, 0);
  EXPECT_EQ(message_of([&] { ranks.rank(0).wait_all(); }),
            "the simulation stands still at 10 ns; rank 0: compute: 'b' of 'p' waits for 'sum' on "
            "communication, communication: 'sum' waits for rank 1; rank 1: nothing is started");
}

TEST(SimulatedRanks, RefuseAMeetingOfDifferentCollectives) {
  const HandMadeTimes times({{"sum", {5}}, {"send", {5}}});
  SimulatedRanks ranks(comm::data_mesh(2), 2, times);
  Instruction other = meeting("send");
  other.collective->kind = comm::CollectiveKind::broadcast;
  ranks.rank(0).load(hand_made("p", {meeting("sum")}));
  ranks.rank(1).load(hand_made("p", {other}));
  ranks.rank(0).start(0, 0);
  EXPECT_EQ(message_of([&] { ranks.rank(1).start(0, 0); }),
            "rank 1 came to 'send' and rank 0 to 'sum', which are different collectives");
}

/// Meetings, transfers and work that wait for one another, long enough to be timed.
Program long_program(int instructions) {
  std::vector<Instruction> list;
  for (std::int32_t i = 0; i < instructions; ++i) {
    if (i % 4 == 0)
      list.push_back(meeting("sum"));
    else if (i % 4 == 1)
      list.push_back(hand_made(Queue::upload, "up"));
    else
      list.push_back(hand_made(Queue::compute, i % 4 == 2 ? "a" : "b", {i - 2}));
  }
  return hand_made("long", std::move(list));
}

const HandMadeTimes& long_times() {
  static const HandMadeTimes times(
      {{"sum", {900, {of(HostResource::host_memory, 0.3), of(HostResource::cores, 0.1)}}},
       {"up", {500, {of(HostResource::link_up, 1), of(HostResource::host_memory, 0.2)}}},
       {"a", {700, {of(HostResource::cores, 0.125), of(HostResource::host_memory, 0.1)}}},
       {"b", {300, {of(HostResource::cores, 0.125), of(HostResource::host_memory, 0.2)}}}});
  return times;
}

Words long_run(int world, int instructions) {
  SimulatedRanks ranks(comm::data_mesh(world), world, long_times());
  Listing listing;
  ranks.rank(world - 1).add_observer(listing);
  const Program program = long_program(instructions);
  for (int r = 0; r < world; ++r) {
    ranks.rank(r).borrow(program);
    ranks.rank(r).start(0, 0);
  }
  for (int r = 0; r < world; ++r) ranks.rank(r).wait_all();
  return listing.lines;
}

TEST(SimulatedRanks, TheSameCallsGiveTheSameTimes) {
  const Words once = long_run(4, 1000);
  EXPECT_EQ(once.size(), 1001u);
  EXPECT_EQ(long_run(4, 1000), once);
}

TEST(SimulatedRanks, EightRanksOfTwentyThousandInstructionsTakeAboutASecond) {
  const auto begin = std::chrono::steady_clock::now();
  (void)long_run(8, 20'000);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 10) << "even with sanitizers and others at work";
}

TEST(SimulatedRanks, RecordersOfADeviceTakeVirtualTimes) {
  const HandMadeTimes times({{"a", {10'000}}, {"b", {20'000}}, {"up", {15'000}}, {"r", {7'000}}});
  SimulatedRanks ranks(comm::data_mesh(1), 1, times);
  TraceRecorder trace({.of = TraceOf::device});
  UsageRecorder usage(TraceOf::device);
  ProfileRecorder profile(TraceOf::device, 1);
  for (Observer* observer : std::initializer_list<Observer*>{&trace, &usage, &profile})
    ranks.rank(0).add_observer(*observer);
  ranks.rank(0).load(
      hand_made("p", {hand_made(Queue::disk_read, "r"), hand_made(Queue::upload, "up", {0}),
                      hand_made(Queue::compute, "a"), hand_made(Queue::compute, "b", {1})}));
  for (int step = 0; step < 3; ++step) ranks.rank(0).start(0, step);
  ranks.rank(0).wait_all();
  Words slices;
  for (const JsonValue& event : parse_json("[" + trace.events() + "null]", "trace", {}).elements())
    if (event.is(JsonKind::object) && event.at("ph").as_string() == "X" &&
        event.at("args").at("step").as_integer() == 2)
      slices.push_back(event.at("name").as_string() + " " +
                       std::to_string(event.at("ts").as_number()) + " " +
                       std::to_string(event.at("dur").as_number()));
  EXPECT_EQ(slices,
            (Words{"step 2 42.000000 30.000000", "a 42.000000 10.000000", "b 52.000000 20.000000",
                   "up 22.000000 15.000000", "r 7.000000 7.000000"}));
  const Usage used = usage.take(2);
  EXPECT_DOUBLE_EQ(used[static_cast<std::size_t>(Queue::compute)].busy_seconds, 90e-6);
  EXPECT_DOUBLE_EQ(used[static_cast<std::size_t>(Queue::disk_read)].busy_seconds, 21e-6);
  EXPECT_DOUBLE_EQ(used[static_cast<std::size_t>(Queue::upload)].waited_seconds, 12e-6);
  EXPECT_EQ(profile.steps(), 2);
  EXPECT_EQ(profile.wall_ns(), 60'000);
}

}  // namespace
}  // namespace strata::runtime
