#include "core/standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "core/error.h"
#include "core/unique_fd.h"

namespace strata {
namespace {

using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Stream stream_of(UniqueFd fd) { return {::fdopen(fd.release(), "w"), std::fclose}; }

std::string message_of_finish(StandardOutput& output) {
  try {
    output.finish();
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

class StandardOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  }
  Stream full_{std::fopen("/dev/full", "w"), std::fclose};
};

constexpr const char* kFull = "standard output: text is lost: No space left on device";

TEST_F(StandardOutputTest, AFullDiskIsKeptInMindAndThrownOnce) {
  StandardOutput output(full_.get());
  EXPECT_TRUE(output.takes_text());
  output.throw_if_lost();
  output.print("a");
  output.print("b");
  EXPECT_FALSE(output.takes_text());
  EXPECT_EQ(message_of_finish(output), kFull);
  EXPECT_EQ(message_of_finish(output), "");
}

TEST_F(StandardOutputTest, LongTextKeepsItsReason) {
  StandardOutput output(full_.get());
  output.print(std::string(1 << 20, 'x'));
  EXPECT_EQ(message_of_finish(output), kFull);
}

TEST_F(StandardOutputTest, TextOfOthersCounts) {
  std::fputs("help", full_.get());
  StandardOutput output(full_.get());
  EXPECT_EQ(message_of_finish(output), kFull);
}

TEST_F(StandardOutputTest, LongTextOfOthersCountsWithoutAReason) {
  const std::string text(1 << 20, 'x');
  std::fputs(text.c_str(), full_.get());
  std::fflush(full_.get());
  StandardOutput output(full_.get());
  EXPECT_EQ(message_of_finish(output), "standard output: text is lost");
}

/// Ignores SIGPIPE while it lives, as a parent may have asked of a program.
class WithoutSigpipe {
 public:
  WithoutSigpipe() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~WithoutSigpipe() { ::signal(SIGPIPE, before_); }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  void (*before_)(int);
};

TEST(StandardOutput, AClosedPipeIsNoFailure) {
  const WithoutSigpipe ignored;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  const Stream pipe = stream_of(UniqueFd(ends[1]));
  StandardOutput output(pipe.get());
  output.print("a");
  EXPECT_FALSE(output.takes_text());
  const std::string text(1 << 20, 'x');
  std::fputs(text.c_str(), pipe.get());  // its errno is lost
  std::fflush(pipe.get());
  EXPECT_EQ(message_of_finish(output), "");
}

TEST(StandardOutput, ATerminalThatHasGoneIsNoFailure) {
  UniqueFd screen(::posix_openpt(O_RDWR | O_NOCTTY));
  ASSERT_TRUE(screen.valid());
  ASSERT_EQ(::grantpt(screen.get()), 0);
  ASSERT_EQ(::unlockpt(screen.get()), 0);
  const Stream terminal = stream_of(UniqueFd(::open(::ptsname(screen.get()), O_WRONLY | O_NOCTTY)));
  ASSERT_TRUE(terminal);
  StandardOutput output(terminal.get());
  output.print("a");
  EXPECT_TRUE(output.takes_text());
  screen.close();
  output.print("b");
  EXPECT_FALSE(output.takes_text());
  EXPECT_EQ(message_of_finish(output), "");
}

TEST(StandardOutput, TextArrivesAtOnce) {
  const std::string path = testing::TempDir() + "/standard_output";
  const Stream file(std::fopen(path.c_str(), "w"), std::fclose);
  StandardOutput output(file.get());
  output.print("a\n");
  EXPECT_EQ(std::filesystem::file_size(path), 2u);
  EXPECT_EQ(message_of_finish(output), "");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace strata
