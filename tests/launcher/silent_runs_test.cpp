// Tests mlaunch status, mlaunch stop and mlaunch logs with real processes, of runs that were killed
// or suspended, have ended, lost their socket or never had one.
#include <signal.h>
#include <sys/stat.h>

#include <thread>

#include "core/file.h"
#include "tests/launcher/views.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

TEST_F(Views, AKilledRunLeavesNothingForLong) {
  const auto run = start("report");
  ASSERT_EQ(sockets().size(), 1U);
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
  MlaunchProcess watch({"status", "--watch", only_run()});
  EXPECT_TRUE(watch.wait_for_output("running", 1));
  run->send(SIGKILL);
  EXPECT_EQ(run->wait(), 1000 + SIGKILL);
  EXPECT_EQ(watch.wait(), 0);
  EXPECT_TRUE(contains(watch.output(), " has ended without a report: ")) << "nobody knows its code";
  EXPECT_EQ(status().at("runs").size(), 0);
  EXPECT_TRUE(sockets().empty());
}

// Fault 12.
TEST_F(Views, WhatIsKnownOfAKilledRunIsTold) {
  MlaunchProcess run({"-np", "2", "--log-dir", home_ / "logs", ACTOR_PATH, "report"});
  ASSERT_TRUE(run.wait_for_output("ready", 2)) << run.error();
  const std::string id = only_run(), record = folder() + "/" + id + ".record";
  const auto is_recorded = [&] {
    return fs::exists(record) && contains(read_whole_file(record, 10'000), "out/step-10");
  };
  for (int i = 0; i < 500 && !is_recorded(); ++i) std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(is_recorded());
  run.send(SIGKILL);
  EXPECT_EQ(run.wait(), 1000 + SIGKILL);
  const std::string killed = "run " + id + " has ended without a report: its mlaunch (process " +
                             std::to_string(run.pid()) + " on ";
  const Result past = mlaunch({"status", id.substr(0, 6)});
  EXPECT_EQ(past.code, 0) << past.error;
  for (const std::string& part :
       {killed, std::string("it was seen last at 20"),
        std::string("step 10 is saved in out/step-10; the same command with --resume auto goes on"),
        "its logs and reports are in " + (home_ / "logs/") + id})
    EXPECT_TRUE(contains(past.output, part)) << part << " in\n" << past.output;
  EXPECT_EQ(status({id}).at("runs").elements().front().at("state").as_string(), "killed");
  EXPECT_EQ(status().at("runs").size(), 0);
  EXPECT_TRUE(contains(mlaunch({"status"}).output, "run " + id + " was killed, and was seen last"));
  const Result logs = mlaunch({"logs", id});
  EXPECT_EQ(logs.output, "[0] ready\n[1] ready\n") << logs.error;
  EXPECT_TRUE(contains(mlaunch({"logs"}).error, "run " + id + " was killed: mlaunch status " + id));
  const Result stop = mlaunch({"stop", id});
  EXPECT_EQ(stop.code, 0) << stop.error;
  EXPECT_TRUE(stop.output.starts_with(killed)) << stop.output;
}

/// As a cleaner of /tmp removes it.
TEST_F(Views, ALiveRunWithoutItsSocketIsNotCalledKilledAndNotStopped) {
  const auto run = start("save");
  const std::string id = only_run();
  const auto is_recorded = [&] { return fs::exists(folder() + "/" + id + ".record"); };
  for (int i = 0; i < 500 && !is_recorded(); ++i) std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(is_recorded());
  fs::remove(sockets().front());
  const std::string silent = "its mlaunch (process " + std::to_string(run->pid()) +
                             ") is there, but its socket was removed; it makes another one within";
  const Result stop = mlaunch({"stop", id});
  EXPECT_EQ(stop.code, 75) << stop.output;
  EXPECT_TRUE(contains(stop.error, "run " + id + " does not answer: " + silent)) << stop.error;
  EXPECT_TRUE(contains(stop.error, "the run was not asked to end, try again")) << stop.error;
  const Result all = mlaunch({"status"});
  EXPECT_TRUE(contains(all.output, "no answer: " + silent)) << all.output;
  EXPECT_FALSE(contains(all.output, "was killed")) << all.output;
  const JsonValue one = status({id}).at("runs").elements().front();
  EXPECT_EQ(one.at("state").as_string(), "no answer");
  const Result logs = mlaunch({"logs", id});
  EXPECT_EQ(logs.code, 69) << logs.output;
  EXPECT_TRUE(contains(logs.error, silent)) << logs.error;
  for (int i = 0; i < 1000 && sockets().empty(); ++i) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(mlaunch({"stop", id}).code, 0) << "it has made another one";
  EXPECT_EQ(run->wait(), 75);
}

TEST_F(Views, ARunOnAnotherHostIsNotCalledKilled) {
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms::owner_all);
  const std::string id = "0123456789abcdef";
  (void)home_.file("strata/" + id + ".record",
                   R"({"run":"0123456789abcdef","state":"killed","host":"elsewhere","process":1,)"
                   R"("seen_at":"9026-11-29T01:02:03Z"})");
  (void)home_.file("strata/aaaaaaaaaaaaaaaa.record", "{");  // as a host leaves it that went down
  const Result stop = mlaunch({"stop", id});
  EXPECT_EQ(stop.code, 69) << stop.output;
  EXPECT_TRUE(contains(stop.error, "run " + id + " does not answer: it is on host elsewhere (pro"))
      << stop.error;
  const Result all = mlaunch({"status"});
  EXPECT_EQ(all.code, 0) << all.error;
  EXPECT_TRUE(contains(all.output, "run " + id + " is on host elsewhere, where it was seen last"))
      << all.output;
  EXPECT_EQ(status({id}).at("runs").elements().front().at("state").as_string(), "no answer");
}

TEST_F(Views, ARunThatTellsItsEndLeavesNoRecord) {
  const auto run = start("save");
  const std::string record = folder() + "/" + only_run() + ".record";
  for (int i = 0; i < 500 && !fs::exists(record); ++i)
    std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(fs::exists(record));
  run->send(SIGTERM);
  EXPECT_EQ(run->wait(), 75);
  EXPECT_FALSE(fs::exists(record));
}

TEST_F(Views, StopOfASuspendedRunSaysSoAndIsObeyedLater) {
  const auto run = start("save");
  const std::string id = only_run();
  run->send(SIGSTOP);
  const Result stop = mlaunch({"stop"});
  EXPECT_EQ(stop.code, 75);
  EXPECT_TRUE(contains(stop.error, "mlaunch: run " + id +
                                       " does not answer: its mlaunch (process " +
                                       std::to_string(run->pid()) + ") is stopped (kill -CONT " +
                                       std::to_string(run->pid()) +
                                       "); once it goes on it obeys: the run saves and ends"))
      << stop.error;
  const JsonValue silent = status().at("runs").elements().front();
  EXPECT_EQ(silent.at("process").as_integer(), run->pid());
  EXPECT_TRUE(contains(silent.at("why").as_string(), "is stopped (kill -CONT "));
  EXPECT_TRUE(contains(mlaunch({"status"}).output, "\nno answer: its mlaunch (process "));
  const Result logs = mlaunch({"logs"});
  EXPECT_EQ(logs.code, 69);
  EXPECT_TRUE(contains(logs.error, "is stopped (kill -CONT ")) << logs.error;
  run->send(SIGCONT);
  EXPECT_EQ(run->wait(), 75);
  EXPECT_TRUE(contains(run->output(), "[1] saved after signal 15")) << run->output();
}

TEST_F(Views, ASuspendedRunIsShownAndDoesNotBlockOthers) {
  const auto suspended = start("report"), other = start("report");
  suspended->send(SIGSTOP);
  int silent = 0;
  for (const JsonValue& run : status().at("runs").elements())
    silent += run.at("state").as_string() == "no answer" ? 1 : 0;
  EXPECT_EQ(silent, 1);
  suspended->send(SIGCONT);
}

TEST_F(Views, ARunGoesOnWithoutASocketInAFolderThatIsNotItsOwn) {
  fs::create_directory(folder());
  ASSERT_EQ(::chmod(folder().c_str(), 0777), 0);
  const auto run = start("save");
  EXPECT_TRUE(
      run->wait_for_error("note: mlaunch status, mlaunch stop and mlaunch logs do not reach this "
                          "run: " +
                          folder() + " is open to other users"))
      << run->error();
  EXPECT_TRUE(sockets().empty());
  const Result refused = mlaunch({"status"});
  EXPECT_EQ(refused.code, 69);
  EXPECT_TRUE(contains(refused.error, "is open to other users (mode 777); chmod 700 "));
  run->send(SIGTERM);
  EXPECT_EQ(run->wait(), 75);
}

}  // namespace
}  // namespace strata::testing
