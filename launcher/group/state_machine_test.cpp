#include "launcher/group/state_machine.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;
using Actions = std::vector<Action>;

constexpr milliseconds kGrace{4000};
constexpr Ending kDone{Ending::Kind::exited, 0};

Ending exited(int code) { return {Ending::Kind::exited, code}; }
Ending killed(int number) { return {Ending::Kind::killed, number}; }

/// A state machine with a clock that the test moves.
struct Rig {
  explicit Rig(int ranks, milliseconds grace = kGrace) : machine(ranks, grace) {}

  Actions at(int ms, const Event& event) { return machine.handle(start + milliseconds(ms), event); }
  /// Returns the next deadline in milliseconds; -1: none.
  [[nodiscard]] std::int64_t deadline() const {
    const auto time = machine.next_deadline();
    return time ? std::chrono::duration_cast<milliseconds>(*time - start).count() : -1;
  }
  Actions end_all_outputs(int ms, int ranks) {
    Actions all;
    for (int rank = 0; rank < ranks; ++rank)
      for (Action& action : at(ms, RankOutputEnded{rank})) all.push_back(std::move(action));
    return all;
  }

  TimePoint start{};
  StateMachine machine;
};

template <typename T>
int count_of(const Actions& actions) {
  return static_cast<int>(std::count_if(actions.begin(), actions.end(), [](const Action& action) {
    return std::holds_alternative<T>(action);
  }));
}

bool has(const Actions& actions, const Action& action) {
  return std::find(actions.begin(), actions.end(), action) != actions.end();
}

TEST(StateMachine, SuccessEndsWithZeroWhenOutputAndProcessesAreGone) {
  Rig rig(2);
  EXPECT_TRUE(rig.at(0, RankEnded{0, kDone}).empty());
  EXPECT_TRUE(rig.at(1, RankEnded{1, kDone}).empty());
  EXPECT_TRUE(rig.at(2, NoProcessLeft{}).empty());
  EXPECT_TRUE(rig.at(3, RankOutputEnded{1}).empty());
  EXPECT_EQ(rig.at(4, RankOutputEnded{0}), Actions{Finish{0}});
  EXPECT_FALSE(rig.machine.failure());
}

TEST(StateMachine, OrphansOfASuccessfulRunGetHalfASecond) {
  Rig rig(1);
  rig.at(0, RankOutputEnded{0});
  EXPECT_TRUE(rig.at(100, RankEnded{0, kDone}).empty());
  EXPECT_EQ(rig.deadline(), 600);
  EXPECT_EQ(rig.at(600, Tick{}), Actions{EndLeftovers{}});
  EXPECT_EQ(rig.at(610, NoProcessLeft{}), Actions{Finish{0}});
}

TEST(StateMachine, FailureWakesPeersThenTermThenKill) {
  Rig rig(3);
  EXPECT_EQ(rig.at(10, RankEnded{1, exited(78)}),
            Actions{FailWaitingPeers{"rank 1 exited with code 78 (configuration)"}});
  EXPECT_EQ(rig.deadline(), 1010);
  EXPECT_EQ(rig.at(1010, Tick{}), (Actions{SignalRank{0, SIGTERM}, SignalRank{2, SIGTERM}}));
  EXPECT_TRUE(rig.at(1020, RankEnded{2, killed(SIGTERM)}).empty());
  EXPECT_EQ(rig.deadline(), 5010);
  EXPECT_EQ(rig.at(5010, Tick{}), Actions{SignalRank({0, SIGKILL})});
  EXPECT_EQ(rig.at(5020, RankEnded{0, killed(SIGKILL)}), Actions{EndLeftovers{}});
  rig.end_all_outputs(5030, 3);
  EXPECT_EQ(rig.at(5040, NoProcessLeft{}), Actions{Finish{78}});
  EXPECT_EQ(rig.machine.failure()->rank, 1);
}

TEST(StateMachine, AFailureOfAPeerElsewhereEndsRanksAsOneHere) {
  Rig rig(2);
  EXPECT_EQ(rig.at(10, PeerFailed{"rank 5 was killed"}),
            Actions{FailWaitingPeers{"rank 5 was killed"}});
  EXPECT_TRUE(rig.machine.is_failing());
  EXPECT_EQ(rig.at(1010, Tick{}), (Actions{SignalRank{0, SIGTERM}, SignalRank{1, SIGTERM}}));
  EXPECT_TRUE(rig.at(1020, PeerFailed{"once more"}).empty());
}

TEST(StateMachine, AFailureOfAPeerEndsRanksThatAreToStop) {
  Rig rig(1);
  rig.at(10, SignalReceived{SIGTERM});
  EXPECT_FALSE(rig.machine.is_failing());
  EXPECT_FALSE(rig.at(20, PeerFailed{"rank 5 was killed"}).empty());
}

TEST(StateMachine, DeathBySignalIs128PlusSignal) {
  Rig rig(1);
  rig.at(0, RankEnded{0, killed(SIGSEGV)});
  rig.at(1, NoProcessLeft{});
  EXPECT_EQ(rig.at(2, RankOutputEnded{0}), Actions{Finish{139}});
}

TEST(StateMachine, ARankThatBlamesAPeerGivesWayToTheCulprit) {
  Rig rig(3);
  rig.at(0, RankEnded{0, exited(75)});
  rig.at(5, RankEnded{2, killed(SIGABRT)});
  rig.at(6, RankEnded{1, exited(1)});
  EXPECT_EQ(rig.machine.failure()->rank, 2);
}

TEST(StateMachine, ARankEndedByUsIsNotTheCulprit) {
  Rig rig(2);
  rig.at(0, RankEnded{0, exited(75)});
  rig.at(1000, Tick{});
  rig.at(1001, RankEnded{1, killed(SIGTERM)});
  EXPECT_EQ(rig.machine.failure()->rank, 0);
}

TEST(StateMachine, CtrlCIsForwardedThenEscalates) {
  Rig rig(1);
  const Actions first = rig.at(0, SignalReceived{SIGINT});
  EXPECT_TRUE(has(first, SignalRank{0, SIGINT}));
  EXPECT_EQ(count_of<Say>(first), 1);
  EXPECT_EQ(rig.deadline(), 2000);
  EXPECT_EQ(rig.at(2000, Tick{}), Actions{SignalRank({0, SIGTERM})});
  EXPECT_EQ(rig.at(4000, Tick{}), Actions{SignalRank({0, SIGKILL})});
  EXPECT_EQ(rig.at(4001, RankEnded{0, killed(SIGKILL)}), Actions{EndLeftovers{}});
  rig.at(4002, RankOutputEnded{0});
  EXPECT_EQ(rig.at(4003, NoProcessLeft{}), Actions{Finish{130}});
  EXPECT_FALSE(rig.machine.failure());
  EXPECT_FALSE(rig.machine.was_kill_asked());
}

TEST(StateMachine, CtrlCAfterTheTimeIsOverAsksForNoKill) {
  Rig rig(1);
  rig.at(0, SignalReceived{SIGINT});
  rig.at(2000, Tick{});
  ASSERT_EQ(rig.at(4000, Tick{}), Actions{SignalRank({0, SIGKILL})});
  rig.at(4100, SignalReceived{SIGINT});
  EXPECT_FALSE(rig.machine.was_kill_asked());
}

TEST(StateMachine, SecondCtrlCKillsAtOnce) {
  Rig rig(2);
  rig.at(0, SignalReceived{SIGINT});
  EXPECT_EQ(rig.at(1, SignalReceived{SIGINT}),
            (Actions{SignalRank{0, SIGKILL}, SignalRank{1, SIGKILL}}));
  EXPECT_TRUE(rig.machine.was_kill_asked());
}

TEST(StateMachine, CtrlCWhileAFailureEndsKillsAndKeepsTheFailure) {
  Rig rig(2);
  rig.at(0, RankEnded{0, exited(74)});
  EXPECT_EQ(rig.at(1, SignalReceived{SIGINT}), Actions{SignalRank({1, SIGKILL})});
  rig.at(2, RankEnded{1, killed(SIGKILL)});
  rig.end_all_outputs(3, 2);
  EXPECT_EQ(rig.at(4, NoProcessLeft{}), Actions{Finish{74}});
}

TEST(StateMachine, TermAndHangupReachTheRanksAsTerm) {
  for (const int number : {SIGTERM, SIGHUP}) {
    Rig rig(1);
    EXPECT_TRUE(has(rig.at(0, SignalReceived{number}), SignalRank{0, SIGTERM}));
    rig.at(1, RankEnded{0, exited(0)});
    rig.at(2, NoProcessLeft{});
    EXPECT_EQ(rig.at(3, RankOutputEnded{0}), Actions{Finish{128 + number}});
  }
}

constexpr milliseconds kLongGrace{30'000};

TEST(StateMachine, TermLetsRanksStopByThemselves) {
  Rig rig(2, kLongGrace);
  const Actions first = rig.at(0, SignalReceived{SIGTERM});
  EXPECT_TRUE(has(first, Say{"SIGTERM: the ranks have up to 30 s to stop by themselves; a second "
                             "one, or Ctrl-C, ends them"}))
      << "how long they take is for them to say: a rank may end at once";
  EXPECT_TRUE(has(first, SignalRank{0, SIGTERM}));
  EXPECT_TRUE(has(first, SignalRank{1, SIGTERM}));
  EXPECT_EQ(count_of<FailWaitingPeers>(first), 0);
  EXPECT_EQ(rig.deadline(), 30'000);
  EXPECT_TRUE(rig.at(10, RankEnded{1, exited(75)}).empty());
  EXPECT_EQ(rig.deadline(), 30'000);
  EXPECT_FALSE(rig.machine.all_stopped());
  EXPECT_TRUE(rig.at(20'000, RankEnded{0, exited(75)}).empty());
  EXPECT_TRUE(rig.machine.all_stopped());
  rig.end_all_outputs(20'001, 2);
  EXPECT_EQ(rig.at(20'002, NoProcessLeft{}), Actions{Finish{75}});
  EXPECT_FALSE(rig.machine.failure());
}

TEST(StateMachine, RanksThatDoNotStopInTimeAreKilled) {
  Rig rig(2, kLongGrace);
  rig.at(0, SignalReceived{SIGTERM});
  rig.at(10, RankEnded{1, exited(75)});
  const Actions late = rig.at(30'000, Tick{});
  EXPECT_EQ(count_of<Say>(late), 1);
  EXPECT_TRUE(has(late, SignalRank{0, SIGKILL}));
  EXPECT_EQ(rig.deadline(), 33'000);
  rig.at(30'001, RankEnded{0, killed(SIGKILL)});
  rig.end_all_outputs(30'002, 2);
  EXPECT_EQ(rig.at(30'003, NoProcessLeft{}), Actions{Finish{75}})
      << "as ranks that see by themselves that their time is over";
  EXPECT_FALSE(rig.machine.all_stopped());
}

TEST(StateMachine, AFailureWhileRanksStopIsOne) {
  Rig rig(2, kLongGrace);
  rig.at(0, SignalReceived{SIGTERM});
  EXPECT_EQ(rig.at(10, RankEnded{1, exited(74)}),
            Actions{FailWaitingPeers{"rank 1 exited with code 74 (read or write error)"}});
  EXPECT_EQ(rig.deadline(), 1010);
  rig.at(20, RankEnded{0, exited(75)});
  rig.end_all_outputs(30, 2);
  EXPECT_EQ(rig.at(40, NoProcessLeft{}), Actions{Finish{74}});
  EXPECT_EQ(rig.machine.failure()->rank, 1);
}

TEST(StateMachine, RanksThatTermKillsAreNotWaitedForAndNoFailure) {
  for (const Ending& ending : {killed(SIGTERM), exited(143)}) {
    Rig rig(2, kLongGrace);
    rig.at(0, SignalReceived{SIGTERM});
    EXPECT_EQ(count_of<FailWaitingPeers>(rig.at(10, RankEnded{0, ending})), 1);
    EXPECT_EQ(rig.deadline(), 2010);
    EXPECT_EQ(rig.at(2010, Tick{}), Actions{SignalRank({1, SIGTERM})});
    EXPECT_EQ(rig.at(4010, Tick{}), Actions{SignalRank({1, SIGKILL})});
    rig.at(4011, RankEnded{1, killed(SIGKILL)});
    rig.end_all_outputs(4012, 2);
    EXPECT_EQ(rig.at(4013, NoProcessLeft{}), Actions{Finish{143}});
    EXPECT_FALSE(rig.machine.failure());
  }
}

TEST(StateMachine, ASecondTermOrCtrlCDoesNotWaitForTheGrace) {
  for (const int number : {SIGTERM, SIGINT}) {
    Rig rig(1, kLongGrace);
    rig.at(0, SignalReceived{SIGTERM});
    EXPECT_TRUE(has(rig.at(10, SignalReceived{number}), SignalRank{0, number}));
    EXPECT_EQ(rig.deadline(), 2010);
    EXPECT_EQ(rig.at(20, SignalReceived{SIGTERM}), Actions{SignalRank({0, SIGKILL})});
    rig.at(21, RankEnded{0, killed(SIGKILL)});
    rig.at(22, NoProcessLeft{});
    EXPECT_EQ(rig.at(23, RankOutputEnded{0}), Actions{Finish{128 + number}});
  }
}

TEST(StateMachine, AShortGraceIsShortForEveryEnd) {
  Rig rig(1, milliseconds(1000));
  rig.at(0, SignalReceived{SIGINT});
  EXPECT_EQ(rig.deadline(), 500);
  Rig failing(2, milliseconds(1000));
  failing.at(0, RankEnded{0, exited(1)});
  failing.at(1000, Tick{});
  EXPECT_EQ(failing.deadline(), 2000);
}

TEST(StateMachine, RanksThatStopAfterUsr1StoppedOnRequest) {
  Rig rig(3, kLongGrace);
  rig.at(0, SignalReceived{SIGUSR1});
  EXPECT_EQ(rig.deadline(), -1) << "ranks may take it as something else";
  EXPECT_TRUE(rig.at(100, RankEnded{1, exited(75)}).empty());
  EXPECT_EQ(rig.deadline(), 30'100);
  rig.at(200, RankEnded{0, exited(75)});
  rig.at(300, RankEnded{2, exited(75)});
  rig.end_all_outputs(301, 3);
  EXPECT_EQ(rig.at(302, NoProcessLeft{}), Actions{Finish{75}});
  EXPECT_TRUE(rig.machine.all_stopped());
}

TEST(StateMachine, AfterUsr1ARankThatBlamesAPeerStillGivesWayToTheCulprit) {
  Rig rig(3, kLongGrace);
  rig.at(0, SignalReceived{SIGUSR1});
  rig.at(100, RankEnded{1, exited(75)});
  rig.at(101, RankEnded{0, killed(SIGKILL)});
  EXPECT_EQ(rig.deadline(), 1101);
  rig.at(102, RankEnded{2, exited(75)});
  rig.end_all_outputs(103, 3);
  EXPECT_EQ(rig.at(104, NoProcessLeft{}), Actions{Finish{137}});
  EXPECT_EQ(rig.machine.failure()->rank, 0);
}

TEST(StateMachine, ARunThatIsThroughBeforeItStopsWasEndedByTheSignal) {
  Rig rig(2, kLongGrace);
  rig.at(0, SignalReceived{SIGTERM});
  rig.at(1, RankEnded{0, kDone});
  rig.at(2, RankEnded{1, exited(75)});
  rig.end_all_outputs(3, 2);
  EXPECT_EQ(rig.at(4, NoProcessLeft{}), Actions{Finish{143}});
}

TEST(StateMachine, QuitKillsAtOnce) {
  Rig rig(1);
  EXPECT_EQ(rig.at(0, SignalReceived{SIGQUIT}), Actions{SignalRank({0, SIGKILL})});
}

TEST(StateMachine, UserSignalsAndSuspensionPassThrough) {
  Rig rig(2);
  rig.at(0, RankEnded{0, kDone});
  EXPECT_EQ(rig.at(1, SignalReceived{SIGUSR1}), Actions{SignalRank({1, SIGUSR1})});
  EXPECT_EQ(rig.at(2, SignalReceived{SIGTSTP}), (Actions{SignalRank{1, SIGSTOP}, Suspend{}}));
  EXPECT_EQ(rig.at(3, SignalReceived{SIGCONT}), Actions{SignalRank({1, SIGCONT})});
  EXPECT_EQ(rig.machine.user_signal(), 0);
}

TEST(StateMachine, SpawnFailureEndsTheOthersAndIsAHostError) {
  Rig rig(2);
  EXPECT_EQ(count_of<FailWaitingPeers>(rig.at(0, SpawnFailed{1, "no more processes"})), 1);
  rig.at(1000, Tick{});
  rig.at(1001, RankEnded{0, killed(SIGTERM)});
  rig.at(1002, NoProcessLeft{});
  EXPECT_EQ(rig.at(1003, RankOutputEnded{0}), Actions{Finish{69}});
  EXPECT_EQ(rig.machine.failure()->spawn_error, "no more processes");
}

TEST(StateMachine, AProcessThatSurvivesSigkillIsLeft) {
  Rig rig(2);
  rig.at(0, RankEnded{0, exited(1)});
  rig.at(5000, Tick{});
  EXPECT_EQ(rig.deadline(), 8000);
  EXPECT_EQ(rig.at(8000, Tick{}), Actions{Finish{1}});
  EXPECT_TRUE(rig.machine.gave_up());
}

TEST(StateMachine, LeftoversThatSurviveSigkillAreLeft) {
  Rig failed(1);
  failed.at(0, RankOutputEnded{0});
  EXPECT_TRUE(has(failed.at(10, RankEnded{0, exited(70)}), EndLeftovers{}));
  EXPECT_EQ(failed.deadline(), 3010);
  EXPECT_EQ(failed.at(3010, Tick{}), (Actions{TellLeftovers{}, Finish{70}}));
  EXPECT_TRUE(failed.machine.gave_up());
  Rig done(1);
  done.at(0, RankEnded{0, kDone});
  EXPECT_EQ(done.at(500, Tick{}), Actions{EndLeftovers{}});
  EXPECT_EQ(done.deadline(), 3500);
  EXPECT_EQ(done.at(3500, Tick{}), (Actions{TellLeftovers{}, Finish{0}}))
      << "one of them may have the output open for ever";
  EXPECT_TRUE(done.machine.gave_up());
}

TEST(StateMachine, KillingAllIsNoWishOfTheUserAndHasALimit) {
  Rig rig(2);
  EXPECT_EQ(rig.at(10, KillAll{}), (Actions{SignalRank{0, SIGKILL}, SignalRank{1, SIGKILL}}));
  EXPECT_EQ(rig.deadline(), 3010);
  EXPECT_TRUE(rig.at(20, RankEnded{0, killed(SIGKILL)}).empty());
  EXPECT_EQ(rig.at(3010, Tick{}), Actions{Finish{137}});
  EXPECT_TRUE(rig.machine.gave_up());
  EXPECT_FALSE(rig.machine.was_kill_asked());
  EXPECT_EQ(rig.machine.user_signal(), 0);
}

TEST(StateMachine, KillingAllThatRanksLeftKeepsTheirOutput) {
  Rig rig(1);
  rig.at(0, RankEnded{0, kDone});
  EXPECT_EQ(rig.at(10, KillAll{}), Actions{EndLeftovers{}});
  EXPECT_EQ(rig.deadline(), 3010);
  EXPECT_EQ(rig.at(1000, KillAll{}), Actions{EndLeftovers{}});
  EXPECT_EQ(rig.deadline(), 3010) << "it begins no new time";
  EXPECT_TRUE(rig.at(1010, NoProcessLeft{}).empty());
  EXPECT_EQ(rig.deadline(), -1);
  EXPECT_EQ(rig.at(9000, RankOutputEnded{0}), Actions{Finish{0}});
}

TEST(StateMachine, SlowReaderOfOutputIsWaitedForUnlessTheUserSaidStop) {
  Rig patient(1);
  patient.at(0, RankEnded{0, exited(1)});
  patient.at(1, NoProcessLeft{});
  EXPECT_EQ(patient.deadline(), -1);
  Rig hurried(1);
  hurried.at(0, SignalReceived{SIGINT});
  hurried.at(1, RankEnded{0, killed(SIGINT)});
  hurried.at(2, NoProcessLeft{});
  EXPECT_EQ(hurried.deadline(), 2001);
  EXPECT_EQ(hurried.at(2001, Tick{}), Actions{Finish{130}});
}

}  // namespace
}  // namespace strata::launcher
