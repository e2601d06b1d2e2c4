// The state machine in every order of events.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <optional>

#include "launcher/group/state_machine.h"

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGrace{4000};
constexpr Ending kDone{Ending::Kind::exited, 0};
constexpr Ending kTryAgain{Ending::Kind::exited, 75};
constexpr Ending kKilled{Ending::Kind::killed, SIGKILL};

/// Walks through every order of events for two ranks and checks in each what must always hold.
class EveryOrder : public ::testing::Test {
 protected:
  struct World {
    StateMachine machine{2, kGrace};
    bool alive[2] = {true, true};
    bool output_open[2] = {true, true};
    bool no_process_left = false;
    bool first_ending_failed = false;
    bool any_ended = false;
    bool failed = false;
    int user_signals = 0;
    bool all_killed = false;
    TimePoint now{};
    std::optional<TimePoint> trouble_since;
    std::optional<int> exit_code;
  };

  void apply(World& world, const Event& event) {
    for (const Action& action : world.machine.handle(world.now, event)) {
      ASSERT_FALSE(world.exit_code) << "an action after Finish";
      if (const auto* signal = std::get_if<SignalRank>(&action)) {
        ASSERT_TRUE(world.alive[signal->rank]) << "signal to a rank that has ended";
      } else if (const auto* finish = std::get_if<Finish>(&action)) {
        world.exit_code = finish->exit_code;
      }
    }
  }

  void check_finish(const World& world) {
    ++finished_;
    const bool must_fail = world.user_signals > 0 ? !world.any_ended : world.first_ending_failed;
    ASSERT_FALSE(must_fail && *world.exit_code == 0);
    const TimePoint trouble = world.trouble_since.value_or(world.now);
    ASSERT_LE(world.now - trouble, milliseconds(10'000));
  }

  void step(World world, const Event& event, int depth) {
    apply(world, event);
    if (world.exit_code)
      check_finish(world);
    else if (depth > 0)
      walk(world, depth - 1);
  }

  void walk(const World& world, int depth) {
    if (HasFatalFailure()) return;
    for (int rank = 0; rank < 2; ++rank) {
      if (world.alive[rank]) walk_endings(world, rank, depth);
      if (world.output_open[rank]) {
        World next = world;
        next.output_open[rank] = false;
        step(next, RankOutputEnded{rank}, depth);
      }
    }
    for (const int number : {SIGINT, SIGTERM})
      if (world.user_signals < 2) {
        World next = world;
        ++next.user_signals;
        next.trouble_since = next.now;  // time limits count from the last signal
        step(next, SignalReceived{number}, depth);
      }
    if (!world.all_killed) {
      World next = world;
      next.all_killed = true;
      next.trouble_since = next.now;
      step(next, KillAll{}, depth);
    }
    if (!world.alive[0] && !world.alive[1] && !world.no_process_left) {
      World next = world;
      next.no_process_left = true;
      step(next, NoProcessLeft{}, depth);
    }
    if (const auto deadline = world.machine.next_deadline()) {
      World next = world;
      next.now = *deadline;
      step(next, Tick{}, depth);
    } else if (world.alive[0] || world.alive[1]) {
      ASSERT_FALSE(world.trouble_since) << "ranks live after trouble and nothing is due";
    } else {
      ASSERT_TRUE(world.no_process_left) << "leftovers may live for ever and nothing is due";
    }
  }

  void walk_endings(const World& world, int rank, int depth) {
    for (const Ending& ending : {kDone, kTryAgain, kKilled}) {
      World next = world;
      next.alive[rank] = false;
      if (!next.any_ended) next.first_ending_failed = !ending.success();
      next.any_ended = true;
      if (!ending.success() && !next.failed) next.trouble_since = next.now;
      next.failed = next.failed || !ending.success();
      step(next, RankEnded{rank, ending}, depth);
    }
  }

  int finished_ = 0;
};

TEST_F(EveryOrder, EndsWithinTenSecondsOfTroubleAndSignalsOnlyTheLiving) {
  walk(World{}, 11);
  EXPECT_GT(finished_, 1000);
}

}  // namespace
}  // namespace strata::launcher
