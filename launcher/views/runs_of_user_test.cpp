#include "launcher/views/runs_of_user.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "core/clock.h"
#include "core/error.h"
#include "core/host_name.h"
#include "core/testing/test_directory.h"
#include "launcher/group/process_start.h"

namespace strata::launcher {
namespace {

constexpr const char* kFirst = "0123456789abcdef";
constexpr const char* kSecond = "0123aaaaaaaaaaaa";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string refusal(const RunsOfUser& runs, const std::string& typed) {
  return message_of<InvalidArgument>([&] { (void)runs.choose(typed); });
}

struct Told {
  std::string host = host_name();
  std::optional<std::int64_t> start = 1;  ///< of mlaunch, which is this process if it began so
  std::string seen_at = utc_text(std::chrono::system_clock::now());
};

/// Makes the record that a run keeps for the case that it is killed.
std::string record(const std::string& id, const Told& told = {}) {
  const std::string start = told.start ? fmt::format(R"("process_start":{},)", *told.start) : "";
  return fmt::format(R"({{"run":"{}","state":"killed","host":"{}","process":{},{}"seen_at":"{}"}})",
                     id, told.host, ::getpid(), start, told.seen_at);
}

TEST(RunsOfUser, AreChosenByTheBeginningOfAnId) {
  const TestDirectory home;
  const std::vector<std::string> places{home / "a", home / "b", home / "nothing"};
  const UniqueFd first = ControlFolder::make(places[0]).listen(kFirst);
  const UniqueFd second = ControlFolder::make(places[1]).listen(kSecond);
  const RunsOfUser runs(places);
  EXPECT_EQ(runs.living(), (std::vector<std::string>{kFirst, kSecond})) << "from all folders";
  EXPECT_EQ(runs.choose("01234"), kFirst);
  EXPECT_EQ(runs.choose(kSecond), kSecond);
  EXPECT_TRUE(contains(refusal(runs, "0123"), "several runs begin with 0123: 0123456789abcdef "));
  EXPECT_TRUE(contains(refusal(runs, ""), "several runs are there, name one; there are: 0123"));
  EXPECT_TRUE(contains(refusal(runs, "0123456789abcdee"),
                       "no run begins with 0123456789abcdee, did you mean '0123456789abcdef'?"));
  EXPECT_TRUE(contains(refusal(runs, "ffff"), "no run begins with ffff; there are: 0123456789"));
  EXPECT_TRUE(contains(refusal(runs, "ffff"), "sudo -u USER mlaunch status"));
  EXPECT_TRUE(contains(refusal(runs, "ffff"), "of runs that have ended the last 32 are known"));
}

TEST(RunsOfUser, MayBeNoneOrOne) {
  const TestDirectory home;
  const std::vector<std::string> places{home / "a"};
  EXPECT_TRUE(contains(refusal(RunsOfUser(places), ""), "no run is there"));
  EXPECT_TRUE(
      contains(refusal(RunsOfUser(places), "01"), "no run is there; of runs that have ended"));
  EXPECT_FALSE(std::filesystem::exists(home / "a")) << "looking makes nothing";
  UniqueFd first = ControlFolder::make(places[0]).listen(kFirst);
  EXPECT_EQ(RunsOfUser(places).choose(""), kFirst);
  first.close();
  EXPECT_TRUE(RunsOfUser(places).living().empty());
  EXPECT_TRUE(std::filesystem::is_empty(home / "a")) << "the dead run's socket is removed";
}

TEST(RunsOfUser, AreKnownWhenTheyWereKilled) {
  const TestDirectory home;
  const std::vector<std::string> places{home / "a"};
  const ControlFolder folder = ControlFolder::make(places[0]);
  UniqueFd socket = folder.listen(kFirst);
  folder.keep_record(kFirst, record(kFirst));
  folder.keep_record(kSecond, record(kSecond, {.seen_at = "2020-01-01T00:00:00Z"}));
  const RunsOfUser runs(places);
  EXPECT_FALSE(runs.find_ended(kFirst).has_value()) << "it lives";
  EXPECT_TRUE(runs.killed_lately().empty()) << "and the other one is long gone";
  EXPECT_EQ(runs.find_ended(kSecond)->at("state").as_string(), "killed");
  socket.close();
  EXPECT_EQ(runs.find_ended("01234")->at("run").as_string(), kFirst);
  EXPECT_FALSE(runs.find_ended("0123").has_value()) << "two begin so";
  ASSERT_EQ(runs.killed_lately().size(), 1U);
  EXPECT_TRUE(contains(refusal(runs, ""), "run 0123456789abcdef was killed: mlaunch status 0123"));
  folder.keep_end(kFirst, R"({"run":"0123456789abcdef","state":"ended"})");
  EXPECT_EQ(runs.find_ended(kFirst)->at("state").as_string(), "ended") << "it told its end";
  EXPECT_TRUE(runs.killed_lately().empty());
}

TEST(RunsOfUser, AreNotCalledKilledWhileTheirProcessesGoOn) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "a");
  const RunsOfUser runs({home / "a"});
  for (const auto start : {process_start(::getpid()), std::optional<std::int64_t>()}) {
    folder.keep_record(kFirst, record(kFirst, {.start = start}));
    EXPECT_FALSE(runs.find_ended(kFirst).has_value());
    EXPECT_TRUE(runs.killed_lately().empty());
    ASSERT_EQ(runs.silent().size(), 1U);
    const std::string why = message_of<NoAnswer>([&] { (void)runs.choose("0123"); });
    EXPECT_TRUE(contains(why, fmt::format("run 0123456789abcdef does not answer: its mlaunch "
                                          "(process {}) is there, but its socket was removed; it "
                                          "makes another one within 10 s",
                                          ::getpid())))
        << why;
    EXPECT_EQ(message_of<NoAnswer>([&] { (void)runs.choose(""); }), why) << "it is the only one";
  }
  const UniqueFd second = ControlFolder::make(home / "a").listen(kSecond);
  EXPECT_TRUE(contains(refusal(runs, ""), "several runs are there, name one")) << "not only this";
  EXPECT_EQ(runs.choose("0123a"), kSecond);
}

TEST(RunsOfUser, MayBeOnOtherHostsThatShareAFolder) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "a");
  folder.keep_record(kFirst, record(kFirst, {.host = "elsewhere"}));
  folder.listen(kFirst).close();  // as it looks from here
  const RunsOfUser runs({home / "a"});
  EXPECT_TRUE(runs.living().empty());
  EXPECT_EQ(folder.run_ids().size(), 1U) << "its socket is not removed";
  const UniqueFd other = folder.listen(kSecond);
  EXPECT_EQ(folder.run_ids().size(), 2U) << "nor by a run that begins";
  EXPECT_FALSE(runs.find_ended(kFirst).has_value());
  EXPECT_TRUE(runs.killed_lately().empty());
  EXPECT_TRUE(runs.silent().empty());
  ASSERT_EQ(runs.elsewhere_lately().size(), 1U);
  const std::string why = message_of<NoAnswer>([&] { (void)runs.choose("01234"); });
  EXPECT_TRUE(contains(why, "run 0123456789abcdef does not answer: it is on host elsewhere (proc"));
  EXPECT_EQ(runs.choose(""), kSecond) << "the only one of this host";
  folder.keep_end(kFirst, R"({"run":"0123456789abcdef","state":"ended"})");
  EXPECT_TRUE(runs.elsewhere_lately().empty());
}

TEST(RunsOfUser, AreNotMeantByABeginningThatSeveralHave) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "a");
  const std::string elsewhere = "00aa000000000000", killed = "00bb000000000000",
                    ended = "00cc000000000000";
  folder.keep_record(elsewhere, record(elsewhere, {.host = "elsewhere"}));
  folder.keep_record(killed, record(killed));
  folder.keep_end(ended, fmt::format(R"({{"run":"{}","state":"ended"}})", ended));
  const RunsOfUser runs({home / "a"});
  EXPECT_FALSE(runs.find_ended("00").has_value());
  EXPECT_EQ(refusal(runs, "00"), fmt::format("several runs begin with 00: {} {} {}; type more of "
                                             "the id",
                                             elsewhere, killed, ended));
  EXPECT_TRUE(contains(message_of<NoAnswer>([&] { (void)runs.choose("00a"); }), elsewhere));
  EXPECT_TRUE(runs.find_ended("00b").has_value());
  EXPECT_TRUE(runs.find_ended("00c").has_value());
  const std::string silent = "00dd000000000000";
  folder.keep_record(silent, record(silent, {.start = {}}));
  EXPECT_TRUE(contains(refusal(runs, "00"), silent)) << "a run without its socket is one of them";
}

TEST(RunsOfUser, AreFoundBesideBrokenRecordsAndEnds) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "a");
  const RunsOfUser runs({home / "a"});
  folder.keep_record(kFirst, record(kFirst));
  for (const std::string line :
       {"\n", "{\"run\":", "[]\n", R"({"state":"killed","process":1,"host":"a","seen_at":"b"})",
        R"({"run":"0123aaaaaaaaaaaa","process":1,"host":"a"})"}) {
    folder.keep_record(kSecond, line);
    ASSERT_EQ(runs.killed_lately().size(), 1U) << line;
    EXPECT_EQ(runs.killed_lately().front().run_id, kFirst);
    EXPECT_EQ(runs.find_ended("0123")->at("run").as_string(), kFirst);
    EXPECT_TRUE(contains(refusal(runs, kSecond), "no run is there")) << line;
  }
  folder.keep_end(kSecond, "{\"run\":");
  EXPECT_FALSE(runs.find_ended(kSecond).has_value());
}

TEST(RunsOfUser, ThatHaveEndedWereNotKilledWhereverThatIsTold) {
  const TestDirectory home;
  ControlFolder::make(home / "a").keep_record(kFirst, record(kFirst));
  ControlFolder::make(home / "b").keep_end(kFirst, R"({"run":"0123456789abcdef"})");
  EXPECT_TRUE(RunsOfUser({home / "a", home / "b"}).killed_lately().empty());
}

TEST(RunsOfUser, SayWhichProcessDoesNotAnswer) {
  const TestDirectory home;
  const std::vector<std::string> places{home / "a"};
  const UniqueFd socket = ControlFolder::make(places[0]).listen(kFirst);
  const RunsOfUser runs(places);
  try {
    (void)runs.ask(kFirst, "status", std::chrono::milliseconds(10));
    ADD_FAILURE() << "nobody answers";
  } catch (const NoAnswer& error) {
    EXPECT_EQ(error.process(), ::getpid());
    EXPECT_TRUE(
        contains(error.what(), "run 0123456789abcdef does not answer: its mlaunch (process "));
    EXPECT_TRUE(contains(error.why(), "is neither stopped nor frozen")) << error.why();
  }
}

TEST(RunsOfUser, AreNotSoughtInFoldersOfOthersAlone) {
  const TestDirectory home;
  std::filesystem::create_directory(home / "open");
  ASSERT_EQ(::chmod((home / "open").c_str(), 0755), 0);
  const std::string told = message_of<HostError>([&] {
    (void)RunsOfUser({home / "open", home / "a"});
  });
  EXPECT_TRUE(contains(told, "open is open to other users"));
  const UniqueFd socket = ControlFolder::make(home / "a").listen(kFirst);
  EXPECT_EQ(RunsOfUser({home / "open", home / "a"}).choose(""), kFirst);
}

}  // namespace
}  // namespace strata::launcher
