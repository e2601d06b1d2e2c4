// Tests mlaunch status, mlaunch stop and mlaunch logs with real processes, of runs that answer.
#include "tests/launcher/views.h"

#include <signal.h>
#include <sys/stat.h>

#include <sstream>

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

TEST_F(Views, StatusTellsWhereRanksAre) {
  const auto run = start("report");
  const JsonValue told = status();
  EXPECT_EQ(told.at("version").as_integer(), 1);
  ASSERT_EQ(told.at("runs").size(), 1);
  const JsonValue one = told.at("runs").elements().front();
  EXPECT_EQ(one.at("run").as_string().size(), 16U);
  EXPECT_EQ(one.at("program").as_string(), ACTOR_PATH);
  EXPECT_EQ(one.at("process").as_integer(), run->pid());
  EXPECT_EQ(one.at("state").as_string(), "running");
  EXPECT_EQ(one.at("attempt").as_integer(), 0);
  EXPECT_EQ(one.at("restarts_in_hour").as_integer(), 0);
  EXPECT_EQ(one.at("grace_seconds").as_integer(), 200);
  ASSERT_EQ(one.at("ranks").size(), 2);
  const JsonValue rank = one.at("ranks").elements()[1];
  EXPECT_EQ(rank.at("rank").as_integer(), 1);
  EXPECT_EQ(rank.at("phase").as_string(), "backward");
  EXPECT_LT(rank.at("phase_seconds").as_number(), 60);
  EXPECT_EQ(rank.at("step").as_integer(), 12);
  EXPECT_EQ(rank.at("collective").as_integer(), 1);
  EXPECT_EQ(rank.at("collective_name").as_string(), "reduce_scatter layer4");
  EXPECT_EQ(rank.at("loss").as_number(), 2.25);
  EXPECT_EQ(rank.at("tokens_per_second").as_number(), 1000);
  EXPECT_EQ(rank.at("memory_bytes").at("pageable").as_integer(), 4096);
  EXPECT_EQ(rank.at("committed_step").as_integer(), 10);
  EXPECT_EQ(rank.at("checkpoint").as_string(), "out/step-10");
  EXPECT_TRUE(contains(rank.at("where").as_string(), "step 12, backward, instruction 340"));
  EXPECT_FALSE(rank.at("ended").as_boolean());
  const std::string id = one.at("run").as_string();
  const Result people = mlaunch({"status", id.substr(0, 6)});
  EXPECT_EQ(people.code, 0) << people.error;
  EXPECT_TRUE(people.output.starts_with("run ")) << people.output;
  for (const std::string& part : {id, std::string("2.2500"), std::string("4.00 KiB pageable"),
                                  std::string("out/step-10  step 12, backward")})
    EXPECT_TRUE(contains(people.output, part)) << part << " in\n" << people.output;
  EXPECT_EQ(run->error(), "") << "being looked at is not worth a line";
}

TEST_F(Views, StatusKnowsSeveralRunsAndNone) {
  const Result none = mlaunch({"status"});
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.output, "no run of this user is on this host\n");
  const auto first = start("report"), second = start("save");
  EXPECT_EQ(status().at("runs").size(), 2);
  const Result unclear = mlaunch({"stop"});
  EXPECT_EQ(unclear.code, 2);
  EXPECT_TRUE(contains(unclear.error, "mlaunch: several runs are there, name one; there are: "));
  const Result unknown = mlaunch({"status", "xyz"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.error, "mlaunch: no run begins with xyz; there are: "));
}

TEST_F(Views, AProgramMayBeCalledStatus) {
  const std::string program = home_.file("status", "#!/bin/sh\necho I am a program\n");
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  const std::string path = std::string(std::getenv("PATH"));
  ::setenv("PATH", (home_.path() + ":" + path).c_str(), 1);
  const Result word = mlaunch({"--", "status"}), ranks = mlaunch({"-np", "1", "status"});
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(word.output, "I am a program\n") << word.error;
  EXPECT_EQ(ranks.output, "I am a program\n") << ranks.error;
  EXPECT_EQ(mlaunch({program}).output, "I am a program\n");
}

TEST_F(Views, StopLetsRanksSaveAndWaitsForTheEnd) {
  const auto run = start("save");
  const std::string id = only_run();
  const Result stop = mlaunch({"stop"});
  EXPECT_EQ(stop.code, 0) << stop.error;
  EXPECT_EQ(stop.output,
            "run " + id + " is asked to save and end\nrun " + id + " has ended with code 75\n");
  EXPECT_EQ(run->wait(), 75);
  EXPECT_TRUE(contains(run->output(), "[1] saved after signal 15")) << run->output();
  EXPECT_TRUE(contains(run->error(), "mlaunch: mlaunch stop asks the ranks to save and end"));
  EXPECT_TRUE(sockets().empty());
  const Result again = mlaunch({"stop", id});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.output, "run " + id + " has ended with code 75\n");
  EXPECT_EQ(mlaunch({"stop", "fff"}).code, 2);
}

TEST_F(Views, StatusOfARunThatHasEndedNamesWhatIsLeft) {
  MlaunchProcess run({"-np", "2", "--log-dir", home_ / "logs", "--max-restarts", "0", ACTOR_PATH,
                      "commit", "40", "k"});
  ASSERT_EQ(run.wait(), 128 + SIGKILL);
  const std::string logs = fs::directory_iterator(home_ / "logs")->path();
  const std::string id = fs::path(logs).filename();
  const Result past = mlaunch({"status", id.substr(0, 6)});
  EXPECT_EQ(past.code, 0) << past.error;
  EXPECT_TRUE(past.output.starts_with("run " + id +
                                      " has ended with code 137\nstep 40 is saved in "
                                      "out/step-40\nits logs and reports are in " +
                                      logs + "\nit ended at 2"))
      << past.output;
  const JsonValue told = status({id}).at("runs").elements().front();
  EXPECT_EQ(told.at("state").as_string(), "ended");
  EXPECT_EQ(told.at("exit_code").as_integer(), 137);
  EXPECT_EQ(told.at("log_folder").as_string(), logs);
}

TEST_F(Views, LogsOfARunThatHasEndedAreItsFiles) {
  const std::string script = "echo out $RANK; echo error $RANK >&2";
  MlaunchProcess run({"-np", "2", "--log-dir", home_ / "logs", "sh", "-c", script});
  ASSERT_EQ(run.wait(), 0);
  const std::string id = fs::path(fs::directory_iterator(home_ / "logs")->path()).filename();
  const Result all = mlaunch({"logs", id});
  EXPECT_EQ(all.code, 0) << all.error;
  EXPECT_EQ(all.output, "[0] out 0\n[0] error 0\n[1] out 1\n[1] error 1\n");
  EXPECT_TRUE(contains(all.error, "run " + id + " has ended; these are its files in " +
                                      (home_ / "logs/") + id + ", rank by rank"));
  EXPECT_EQ(mlaunch({"logs", id, "1", "--stderr"}).output, "error 1\n");
  EXPECT_EQ(mlaunch({"logs", id, "--tail", "1"}).output, "[1] error 1\n");
  EXPECT_EQ(mlaunch({"logs", id, "0", "--json", "--stdout"}).output,
            "{\"rank\":0,\"attempt\":0,\"stream\":\"stdout\",\"text\":\"out 0\"}\n");
  const Result ninth = mlaunch({"logs", id, "9"});
  EXPECT_EQ(ninth.code, 2);
  EXPECT_TRUE(contains(ninth.error, "the run had ranks 0 to 1, and no rank 9")) << ninth.error;
  fs::remove_all(home_ / "logs");
  EXPECT_TRUE(contains(mlaunch({"logs", id}).error, "has no logs of ranks any more"));
}

TEST_F(Views, ARankThatIsNotThereHasNoLogs) {
  const auto run = start("report");
  const Result ninth = mlaunch({"logs", "9"});
  EXPECT_EQ(ninth.code, 2);
  EXPECT_TRUE(contains(ninth.error, "has ranks 0 to 1, and no rank 9")) << ninth.error;
  EXPECT_EQ(mlaunch({"logs", "1"}).code, 0);
}

TEST_F(Views, StatusOfARunWithoutLogsSaysThatNothingIsLeft) {
  const auto run = start("save");
  const std::string id = only_run();
  run->send(SIGTERM);
  EXPECT_EQ(run->wait(), 75);
  const Result past = mlaunch({"status", id});
  EXPECT_TRUE(contains(past.output, "nothing else was kept of it; with mlaunch --log-dir DIR"))
      << past.output << past.error;
}

TEST_F(Views, StopAsksOnceAndNowEndsAtOnce) {
  const auto run = start("slow_save");
  const std::string id = only_run();
  const Result first = mlaunch({"stop", "--wait", "1"});
  EXPECT_EQ(first.code, 75);
  EXPECT_TRUE(contains(first.error, "has not ended within 1 s; mlaunch stop --now " + id));
  EXPECT_EQ(status().at("runs").elements().front().at("state").as_string(), "stopping");
  const Result second = mlaunch({"stop", "--wait", "0"});
  EXPECT_EQ(second.code, 0);
  EXPECT_TRUE(contains(second.output, "was asked to end before")) << second.output;
  EXPECT_EQ(only_run(), id) << "asking again must not end the save";
  const Result now = mlaunch({"stop", "--now", id});
  EXPECT_EQ(now.code, 0) << now.error;
  EXPECT_TRUE(contains(now.output, "run " + id + " has ended with code 130")) << now.output;
  EXPECT_EQ(run->wait(), 130);
  EXPECT_TRUE(run->all_gone(milliseconds(0)));
}

TEST_F(Views, WatchGoesOnUntilTheRunEnds) {
  const auto run = start("save");
  const std::string id = only_run();
  MlaunchProcess watch({"status", "--watch", id.substr(0, 8)});
  MlaunchProcess lines({"status", "--watch", "--json"});
  EXPECT_TRUE(watch.wait_for_output(id, 2));
  run->send(SIGTERM);
  EXPECT_EQ(run->wait(), 75);
  EXPECT_EQ(watch.wait(), 0);
  EXPECT_TRUE(watch.output().ends_with("\nrun " + id + " has ended with code 75\n"))
      << watch.output();
  EXPECT_EQ(lines.wait(), 0);
  std::istringstream all(lines.output());
  int count = 0;
  for (std::string line; std::getline(all, line); ++count)
    EXPECT_EQ(parse_json(line, "line", {}).at("runs").elements().front().at("run").as_string(), id);
  EXPECT_GE(count, 1);
}

TEST_F(Views, GarbageAndSilenceDoNoHarm) {
  const auto run = start("save");
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(connect());
    const UniqueFd loud = connect();
    const std::string garbage(static_cast<std::size_t>(1 + i * 97), static_cast<char>(i));
    (void)::send(loud.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  EXPECT_EQ(status().at("runs").elements().front().at("state").as_string(), "running");
  EXPECT_LE(std::distance(fs::directory_iterator("/proc/" + std::to_string(run->pid()) + "/fd"),
                          fs::directory_iterator()),
            40);
  EXPECT_EQ(mlaunch({"stop"}).code, 0);
  EXPECT_EQ(run->wait(), 75);
  EXPECT_TRUE(contains(run->output(), "[1] saved after signal 15"));
}

// Fault 14.
TEST_F(Views, StopTellsOfSavesThatFailWhileItWaits) {
  const auto run = start("retry");
  MlaunchProcess stop({"stop"});
  EXPECT_TRUE(stop.wait_for_output("could not be written", 1)) << stop.error();
  const JsonValue rank = status().at("runs").elements().front().at("ranks").elements()[1];
  EXPECT_EQ(rank.at("failed_save").at("step").as_integer(), 12);
  EXPECT_TRUE(rank.at("failed_save").at("why").as_string().starts_with("rank 0: out-"));
  const std::string said = "the checkpoint of step 12 could not be written: rank 0: out-";
  EXPECT_TRUE(contains(mlaunch({"status"}).output, ": " + said));
  EXPECT_EQ(stop.wait(), 0) << stop.error();
  EXPECT_EQ(run->wait(), 75);
  EXPECT_TRUE(contains(stop.output(), said)) << stop.output();
  EXPECT_EQ(stop.output().find(said), stop.output().rfind(said))
      << "once, though each attempt has other numbers:\n"
      << stop.output();
}

// Fault 36.
TEST_F(Views, StopOfRanksThatHearNothingSaysThatTheyWereKilled) {
  MlaunchProcess run({"-np", "2", "--grace", "2", ACTOR_PATH, "save"});
  ASSERT_TRUE(run.wait_for_output("ready", 2)) << run.error();
  for (const JsonValue& rank : status().at("runs").elements().front().at("ranks").elements())
    ASSERT_EQ(::kill(static_cast<pid_t>(rank.at("process").as_integer()), SIGSTOP), 0);
  const Result stop = mlaunch({"stop"});
  EXPECT_EQ(stop.code, 0) << stop.error;
  EXPECT_TRUE(contains(stop.output, "ranks 0, 1 are stopped or frozen, so nothing can be saved"))
      << stop.output;
  EXPECT_TRUE(contains(stop.output, "has ended with code 75\n2 of its ranks did not end in time"))
      << stop.output;
  EXPECT_EQ(run.wait(), 75);
  EXPECT_EQ(run.error_lines().back(),
            "mlaunch: ended by mlaunch stop; ranks 0-1 did not end in time and were killed");
}

}  // namespace
}  // namespace strata::testing
