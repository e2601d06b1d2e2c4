#include "launcher/views/control_folder.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRun = "0123456789abcdef";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ControlFolder, LiesInTheUsersRuntimeFolderOrInTmp) {
  const TestDirectory home;
  const uid_t user = ::geteuid();
  const std::string in_tmp = "/tmp/strata-" + std::to_string(user);
  const std::vector<std::string> both{home.path() + "/strata", in_tmp}, one{in_tmp};
  EXPECT_EQ(ControlFolder::places({nullptr, home.path().c_str()}, user), both);
  EXPECT_EQ(ControlFolder::places({nullptr, nullptr}, user), one);
  EXPECT_EQ(ControlFolder::places({nullptr, ""}, user), one);
  EXPECT_EQ(ControlFolder::places({nullptr, "relative"}, user), one);
  EXPECT_EQ(ControlFolder::places({nullptr, "/nowhere"}, user), one);
  EXPECT_EQ(ControlFolder::places({nullptr, home.path().c_str()}, user + 1).size(), 1U)
      << "of another user";
  EXPECT_EQ(ControlFolder::places({"/runs", home.path().c_str()}, user),
            std::vector<std::string>{"/runs"});
  EXPECT_EQ(ControlFolder::places({"", nullptr}, user), one);
}

TEST(ControlFolder, IsMadeForItsUserAlone) {
  const TestDirectory home;
  EXPECT_FALSE(ControlFolder::find(home / "runs").has_value());
  const ControlFolder folder = ControlFolder::make(home / "runs");
  EXPECT_EQ(fs::status(home / "runs").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(ControlFolder::find(home / "runs").has_value());
  EXPECT_TRUE(folder.run_ids().empty());
}

TEST(ControlFolder, RefusesWhatOthersCouldChange) {
  const TestDirectory home;
  const auto refusal = [&](const std::string& name) {
    return message_of<HostError>([&] { (void)ControlFolder::make(home / name); });
  };
  fs::create_directory(home / "open");
  for (const int mode : {0755, 0710, 0701, 0770, 0720}) {
    ASSERT_EQ(::chmod((home / "open").c_str(), static_cast<mode_t>(mode)), 0);
    EXPECT_TRUE(contains(refusal("open"), "is open to other users")) << mode;
    EXPECT_TRUE(contains(refusal("open"), "chmod 700 " + (home / "open"))) << mode;
  }
  fs::create_directory(home / "mine");
  fs::permissions(home / "mine", fs::perms::owner_all);
  fs::create_symlink(home / "mine", home / "link");
  EXPECT_TRUE(contains(refusal("link"), "is a link or no folder"));
  (void)home.file("file", "");
  EXPECT_TRUE(contains(refusal("file"), "is a link or no folder"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  ASSERT_EQ(::chown((home / "mine").c_str(), 12345, 12345), 0);
  EXPECT_TRUE(contains(refusal("mine"), "belongs to user 12345"));
}

TEST(ControlFolder, KnowsLivingRunsAndRemovesSocketsOfDeadOnes) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "runs");
  UniqueFd socket = folder.listen(kRun);
  (void)home.file("runs/notes.txt", "");
  (void)home.file("runs/short.sock", "");
  ASSERT_EQ(folder.run_ids(), std::vector<std::string>{kRun});
  EXPECT_TRUE(folder.connect(kRun).has_value());
  socket.close();  // as a process does that is killed
  EXPECT_EQ(folder.run_ids(), std::vector<std::string>{kRun});
  EXPECT_FALSE(folder.connect(kRun).has_value());
  EXPECT_TRUE(folder.run_ids().empty());
  EXPECT_TRUE(fs::exists(home / "runs/notes.txt"));
  EXPECT_FALSE(folder.connect(kRun).has_value()) << "it is gone";
}

TEST(ControlFolder, ANewRunRemovesSocketsOfDeadOnes) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "runs");
  const std::string dead(16, 'd'), living(16, 'a');
  const UniqueFd listens = folder.listen(living);
  folder.listen(dead).close();  // as a process does that is killed
  const UniqueFd socket = folder.listen(kRun);
  EXPECT_EQ(folder.run_ids(), (std::vector<std::string>{kRun, living}));
}

TEST(ControlFolder, MayHaveALongName) {
  const TestDirectory home;
  const std::string path = home / std::string(200, 'x');
  const ControlFolder folder = ControlFolder::make(path);
  const UniqueFd socket = folder.listen(kRun);
  EXPECT_TRUE(folder.connect(kRun).has_value());
}

TEST(ControlFolder, KeepsRecordsOfRunsThatGoOnAndOfTheLastThatWereKilled) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "runs");
  const auto id = [](std::size_t number) { return fmt::format("{:016x}", number); };
  const UniqueFd socket = folder.listen(id(0));
  for (std::size_t i = 0; i < ControlFolder::kMostEnds + 3; ++i) {
    folder.keep_record(id(i), "first\n");
    folder.keep_record(id(i), "line\n");
    fs::last_write_time(home / "runs/" + id(i) + ".record",
                        fs::file_time_type::clock::now() - std::chrono::seconds(1000 - i));
  }
  EXPECT_EQ(folder.record_of(id(0)), "line\n") << "the oldest one goes on";
  EXPECT_EQ(folder.record_of(id(1)), "");
  EXPECT_EQ(folder.record_of(id(2)), "");
  EXPECT_EQ(folder.record_of(id(3)), "line\n");
  EXPECT_EQ(folder.recorded_ids().size(), ControlFolder::kMostEnds + 1);
  EXPECT_EQ(fs::status(home / "runs/" + id(3) + ".record").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  folder.remove_record(id(3));
  EXPECT_EQ(folder.record_of(id(3)), "");
  EXPECT_TRUE(folder.ended_ids().empty());
}

TEST(ControlFolder, KeepsNothingWhereItWasRemoved) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "runs");
  fs::remove_all(home / "runs");
  EXPECT_NO_THROW(folder.keep_record(kRun, "line\n"));
  EXPECT_NO_THROW(folder.keep_end(kRun, "line\n"));
  EXPECT_EQ(folder.record_of(kRun) + folder.end_of(kRun), "");
}

TEST(ControlFolder, KeepsTheEndsOfTheLastRuns) {
  const TestDirectory home;
  const ControlFolder folder = ControlFolder::make(home / "runs");
  const auto id = [](std::size_t number) { return fmt::format("{:016x}", number); };
  for (std::size_t i = 0; i < ControlFolder::kMostEnds + 3; ++i) {
    folder.keep_end(id(i), "line\n");
    std::filesystem::last_write_time(
        home / "runs/" + id(i) + ".ended",
        std::filesystem::file_time_type::clock::now() - std::chrono::seconds(1000 - i));
  }
  EXPECT_EQ(folder.ended_ids().size(), ControlFolder::kMostEnds);
  EXPECT_EQ(folder.end_of(id(2)), "") << "the oldest ones are gone";
  EXPECT_EQ(folder.end_of(id(3)), "line\n");
  EXPECT_TRUE(folder.run_ids().empty());
}

}  // namespace
}  // namespace strata::launcher
