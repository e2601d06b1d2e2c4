// Tests what the device executor tells of recordings while a simulated device replays them.
#include "runtime/execute/device_marks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "runtime/testing/relay_rank.h"

namespace strata::runtime {
namespace {

/// Collects what is seen of recordings, and holds each collective until it is seen.
class Seen final : public Observer {
 public:
  [[nodiscard]] bool wants_marks() const override { return true; }
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  void seen_begin(const Program& program, int instruction, std::int64_t collective) override {
    const Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
    if (!in.collective) {
      blocks.push_back(in.label);
      return;
    }
    begun.push_back(in.label);
    numbers.push_back(collective);
    ++passes_;
  }
  void seen_end(const Program& program, int instruction) override {
    ended.push_back(program.instructions[static_cast<std::size_t>(instruction)].label);
  }
  /// Returns on the device's thread once one more collective is seen; gives up after 5 s.
  void hold() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (holds && passes_ == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (holds) --passes_;
  }

  std::atomic<bool> holds = false;
  std::vector<std::string> begun, ended, blocks;
  std::vector<std::int64_t> numbers;

 private:
  std::atomic<int> passes_ = 0;
};

TEST(DeviceMarks, ShowCollectivesOfRecordingsWhileTheyRun) {
  Seen seen;
  RelayRank rank(nullptr, {.observer = &seen, .absent_peers = 1});
  auto& communicator = dynamic_cast<StreamCommunicator&>(rank.communicator());
  communicator.hold = [&] { seen.hold(); };
  std::vector<std::string> collectives;
  for (const Instruction& in : rank.executor().program(0).instructions)
    if (in.collective) collectives.push_back(in.label);
  const std::int64_t first = communicator.begun();
  rank.start();  // not recorded
  rank.executor().wait_all();
  EXPECT_TRUE(seen.begun.empty());
  seen.holds = true;
  std::vector<std::string> expected;
  for (int run = 1; run <= 2; ++run) {
    rank.start();
    rank.executor().wait_all();
    expected.insert(expected.end(), collectives.begin(), collectives.end());
  }
  EXPECT_EQ(seen.begun, expected);
  EXPECT_EQ(seen.ended, expected);
  EXPECT_FALSE(seen.blocks.empty());
  const auto count = static_cast<std::int64_t>(collectives.size());
  EXPECT_EQ(communicator.begun(), first + 3 * count) << "the recording counts nothing";
  for (std::size_t i = 0; i < seen.numbers.size(); ++i)
    EXPECT_EQ(seen.numbers[i], first + count + 1 + static_cast<std::int64_t>(i));
  EXPECT_EQ(rank.device().replays(), 2);
}

/// Stops the device in one of the collectives that pass, until it is opened.
class Gate {
 public:
  /// The gate stops the `number`th collective from now on.
  void stop_at(int number) { left_ = number; }
  void pass() {
    if (--left_ != 0) return;
    is_held_.release();
    EXPECT_TRUE(open_.try_acquire_for(std::chrono::seconds(10)));
  }
  void wait_until_held() { EXPECT_TRUE(is_held_.try_acquire_for(std::chrono::seconds(10))); }
  void open() { open_.release(); }

 private:
  std::atomic<int> left_ = 0;
  std::binary_semaphore is_held_{0}, open_{0};
};

/// Lists what is told of replayed Programs: "short begins", "short 3", "short 3 ends", where 3 is
/// the number of a collective.
class Told final : public Observer {
 public:
  [[nodiscard]] bool wants_marks() const override { return true; }
  void begin_program(const Program& program, std::int64_t) override {
    lines.push_back(program.name + " begins");
  }
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  void seen_begin(const Program& program, int instruction, std::int64_t collective) override {
    if (!is_collective(program, instruction)) return;
    last_ = program.name + " " + std::to_string(collective);
    lines.push_back(last_);
  }
  void seen_end(const Program& program, int instruction) override {
    if (is_collective(program, instruction)) lines.push_back(last_ + " ends");
  }
  std::vector<std::string> lines;

 private:
  bool is_collective(const Program& program, int instruction) {
    const auto at = static_cast<std::size_t>(instruction);
    if (at < program.instructions.size()) return program.instructions[at].collective.has_value();
    lines.push_back(program.name + " has no instruction " + std::to_string(instruction));
    return false;
  }
  std::string last_;
};

/// A rank with two Programs, of 5 collectives and of 1, each of which has run once: from then on
/// both are replayed.
class DeviceMarksOfTwoRuns : public testing::Test {
 protected:
  void SetUp() override {
    dynamic_cast<StreamCommunicator&>(rank_.communicator()).hold = [this] { gate_.pass(); };
    Program program = executor().program(0);
    program.name = "long";
    long_ = executor().load(program);
    program.name = "short";
    const auto first = std::ranges::find_if(
        program.instructions, [](const Instruction& in) { return in.collective.has_value(); });
    program.instructions.erase(first + 1, program.instructions.end());
    short_ = executor().load(program);
    for (const int handle : {long_, short_}) executor().start(handle, 0);
    executor().wait_all();
    told_.lines.clear();
  }

  Executor& executor() { return rank_.executor(); }

  Told told_;
  Gate gate_;
  RelayRank rank_{nullptr, {.observer = &told_, .absent_peers = 1}};
  int long_ = 0, short_ = 0;
};

TEST_F(DeviceMarksOfTwoRuns, AreReadAgainstTheProgramThatTheDeviceHasComeTo) {
  gate_.stop_at(1 + 3);
  executor().start(short_, 1);
  const RunNumber last = executor().start(long_, 2);
  gate_.wait_until_held();
  executor().wait(last - 1);  // the host hears only now that the short one has ended
  gate_.open();
  executor().wait_all();
  ASSERT_GE(told_.lines.size(), 4U);
  told_.lines.resize(4);
  EXPECT_EQ(told_.lines,
            (std::vector<std::string>{"short begins", "long begins", "long 10", "long 10 ends"}));
}

TEST_F(DeviceMarksOfTwoRuns, CountTheCollectivesOfTheRunThatTheDeviceHasComeTo) {
  gate_.stop_at(5 + 2);
  executor().start(long_, 1);
  const RunNumber last = executor().start(long_, 2);
  gate_.wait_until_held();
  executor().wait(last - 1);
  gate_.open();
  executor().wait_all();
  ASSERT_GE(told_.lines.size(), 4U);
  told_.lines.resize(4);
  EXPECT_EQ(told_.lines,
            (std::vector<std::string>{"long begins", "long begins", "long 13", "long 13 ends"}));
}

TEST(DeviceMarks, AreLeftOutWhereTheyCannotBeRecorded) {
  Seen seen;
  RelayRank rank(nullptr, {.observer = &seen, .fault = RecordingFault::mark, .absent_peers = 1});
  for (int run = 0; run < 3; ++run) rank.start();
  rank.executor().wait_all();
  EXPECT_EQ(rank.device().replays(), 2);
  ASSERT_EQ(rank.executor().notes().size(), 1U);
  EXPECT_NE(rank.executor().notes()[0].find("cuMemsetD32Async failed"), std::string::npos)
      << rank.executor().notes()[0];
  EXPECT_TRUE(seen.begun.empty());
}

}  // namespace
}  // namespace strata::runtime
