#include "launcher/start/starters.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Starts a program of the test's folder, which alone is in $PATH.
class StartersTest : public testing::Test {
 protected:
  StartersTest() { ::setenv("PATH", folder_.path().c_str(), 1); }
  ~StartersTest() override { ::setenv("PATH", path_before_.c_str(), 1); }

  void put_program(const std::string& script) const {
    std::filesystem::permissions(folder_.file("starter", "#!/bin/sh\n" + script + "\n"),
                                 std::filesystem::perms::owner_all);
  }
  void remove_program() const { std::filesystem::remove(folder_ / "starter"); }
  void start() {
    starters_.start(begin_, {{.host = "1", .name = "b", .command = {"starter"}}}, "");
  }
  /// Waits for the end of what was started.
  std::vector<Starters::Ended> take_ended() {
    for (int tries = 0; tries < 10'000; ++tries) {
      starters_.work(begin_);
      if (auto ended = starters_.take_ended(begin_); !ended.empty()) return ended;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return {};
  }
  /// Returns what was said so far.
  std::string said() {
    screen_.queue(OutputKind::standard_error).write_some();
    std::string text(1 << 16, '\0');
    const ssize_t count = ::pread(error_.get(), text.data(), text.size(), 0);
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return text;
  }

  const TestDirectory folder_;
  const std::string path_before_ = std::getenv("PATH");
  const UniqueFd output_{::memfd_create("output", MFD_CLOEXEC)};
  const UniqueFd error_{::memfd_create("error", MFD_CLOEXEC)};
  Screen screen_{1, false, output_.get(), error_.get()};
  Starters starters_{screen_};
  const Starters::TimePoint begin_{};
};

TEST_F(StartersTest, ACopyInThisFolderDoesNotGetTheSecret) {
  const std::filesystem::path before = std::filesystem::current_path();
  put_program("exit 0");
  std::filesystem::create_directory(folder_ / "elsewhere");
  ::setenv("PATH", (folder_ / "elsewhere").c_str(), 1);
  std::filesystem::current_path(folder_.path());
  EXPECT_THROW(start(), InvalidArgument);
  std::filesystem::current_path(before);
}

TEST_F(StartersTest, TriesAgainWhatCouldNotBeStartedAgain) {
  put_program("echo no way >&2");
  start();
  const std::vector<Starters::Ended> ended = take_ended();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].why, "no way");
  remove_program();
  for (int tries = 1; tries <= 3; ++tries) {
    ASSERT_EQ(starters_.next_deadline(), begin_ + tries * Starters::kBetweenStarts);
    EXPECT_TRUE(starters_.start_again(begin_ + tries * Starters::kBetweenStarts).empty());
  }
  EXPECT_EQ(said(),
            "no way\n"
            "mlaunch: host b cannot be started again: program starter is not in $PATH\n")
      << "once";
  put_program("exit 0");
  EXPECT_EQ(starters_.start_again(begin_ + 4 * Starters::kBetweenStarts).size(), 1U);
  EXPECT_EQ(starters_.next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace strata::launcher
