#include "launcher/output/screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

constexpr OutputKind kOut = OutputKind::standard_output;
constexpr OutputKind kErr = OutputKind::standard_error;

/// A screen on two files in memory.
struct Rig {
  explicit Rig(int ranks, bool prefix = true)
      : output(::memfd_create("output", MFD_CLOEXEC)),
        error(::memfd_create("error", MFD_CLOEXEC)),
        screen(ranks, prefix, output.get(), error.get()) {}

  std::string text(OutputKind kind) {
    screen.queue(kind).write_some();
    std::string bytes(1 << 22, '\0');
    const ssize_t count =
        ::pread((kind == kOut ? output : error).get(), bytes.data(), bytes.size(), 0);
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return bytes;
  }

  UniqueFd output;
  UniqueFd error;
  Screen screen;
};

TEST(Screen, OneRankPassesBytesUnchangedAndAtOnce) {
  Rig rig(1);
  rig.screen.feed(0, kOut, "no newline\ryet");
  EXPECT_EQ(rig.text(kOut), "no newline\ryet");
}

TEST(Screen, LinesOfSeveralRanksStayWholeAndCarryTheirRank) {
  Rig rig(3);
  rig.screen.feed(0, kOut, "half ");
  rig.screen.feed(2, kOut, "other\nnext");
  rig.screen.feed(0, kOut, "line\n");
  EXPECT_EQ(rig.text(kOut), "[2] other\n[0] half line\n");
  rig.screen.finish_line(2, kOut);
  EXPECT_EQ(rig.text(kOut), "[2] other\n[0] half line\n[2] next\n");
}

TEST(Screen, StandardErrorStaysStandardError) {
  Rig rig(2);
  rig.screen.feed(1, kErr, "bad\n");
  EXPECT_EQ(rig.text(kOut), "");
  EXPECT_EQ(rig.text(kErr), "[1] bad\n");
}

TEST(Screen, PrefixCanBeSwitchedOff) {
  Rig rig(2, false);
  rig.screen.feed(1, kOut, "a");
  rig.screen.feed(0, kOut, "b\n");
  rig.screen.feed(1, kOut, "a\n");
  EXPECT_EQ(rig.text(kOut), "b\naa\n");
}

TEST(Screen, AnEndlessLineIsCutInsteadOfGrowing) {
  Rig rig(2);
  const std::string piece(1 << 16, 'x');
  for (int i = 0; i < 17; ++i) rig.screen.feed(0, kOut, piece);
  EXPECT_EQ(rig.text(kOut).size(), 17u * (1 << 16) + 5);
}

TEST(Screen, KeepsTheTailOfStandardError) {
  Rig rig(2);
  rig.screen.feed(1, kErr, std::string(3000, 'a'));
  rig.screen.feed(1, kErr, std::string(3000, 'b'));
  EXPECT_EQ(rig.screen.error_tail(1), std::string(1096, 'a') + std::string(3000, 'b'));
  rig.screen.feed(1, kErr, std::string(9000, 'c'));
  EXPECT_EQ(rig.screen.error_tail(1), std::string(4096, 'c'));
}

TEST(Screen, OwnWordsBeginOnANewLine) {
  Rig rig(1);
  rig.screen.feed(0, kErr, "50 %");
  rig.screen.say("mlaunch: over");
  EXPECT_EQ(rig.text(kErr), "50 %\nmlaunch: over\n");
}

/// A screen on a pseudo-terminal.
struct TerminalRig {
  explicit TerminalRig(int ranks, unsigned short columns = 0)
      : master(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    EXPECT_EQ(::grantpt(master.get()), 0);
    EXPECT_EQ(::unlockpt(master.get()), 0);
    terminal = UniqueFd(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY));
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
    screen.emplace(ranks, true, terminal.get(), terminal.get());
  }

  /// Returns the output since the last call.
  std::string shown() {
    for (const OutputKind kind : {kOut, kErr}) screen->queue(kind).write_some();
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(master.get(), bytes.data(), bytes.size());
    return {bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  }

  UniqueFd master;
  UniqueFd terminal;
  std::optional<Screen> screen;
};

TEST(Screen, ProgressOfRankZeroStaysBelowTheLinesOnATerminal) {
  TerminalRig rig(2);
  rig.screen->feed(0, kOut, "\rstep 1");
  rig.screen->feed(1, kOut, "hello\n");
  rig.screen->feed(0, kOut, "\rstep 2\n");
  EXPECT_EQ(rig.shown(), "[0] step 1\r\x1b[K[1] hello\r\n[0] step 1\r\x1b[K[0] step 2\r\n");
}

TEST(Screen, ProgressThatClearsItsLineIsCutToTheTerminal) {
  TerminalRig rig(2, 20);
  rig.screen->feed(0, kOut, "\r\x1b[Kstep 1  loss 1.234567890123456789");
  EXPECT_EQ(rig.shown(), "[0] step 1  loss 1.");
  rig.screen->feed(0, kOut, "\r\x1b[K\x1b[32mstep 2  loss 1.234567890123456789");
  EXPECT_EQ(rig.shown(), "\r\x1b[K[0] \x1b[32mstep 2  loss 1.\x1b[0m");
}

TEST(Screen, MessagesOfTheOnlyRankDoNotStickToItsProgress) {
  TerminalRig rig(1, 20);
  rig.screen->feed(0, kOut, "\r\x1b[Kstep 1  loss 1.234567890123456789");
  EXPECT_EQ(rig.shown(), "step 1  loss 1.2345");
  rig.screen->feed(0, kErr, "note: warm\n");
  EXPECT_EQ(rig.shown(), "\r\x1b[Knote: warm\r\nstep 1  loss 1.2345");
  rig.screen->feed(0, kOut, "\r\x1b[Kwrote it\n");
  EXPECT_EQ(rig.shown(), "\r\x1b[Kwrote it\r\n");
}

TEST(Screen, AQuestionOfTheOnlyRankIsShownAtOnceAndWrittenOnce) {
  TerminalRig rig(1, 20);
  rig.screen->feed(0, kOut, "Which of them shall it");
  EXPECT_EQ(rig.shown(), "Which of them shall it");
  rig.screen->feed(0, kOut, " be? ");
  EXPECT_EQ(rig.shown(), " be? ");
  rig.screen->feed(0, kOut, "this\nnext\n");
  EXPECT_EQ(rig.shown(), "this\r\nnext\r\n");
}

TEST(OutputQueue, AStuckReaderBlocksNobody) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  OutputQueue queue(writer.get());
  queue.append(std::string(OutputQueue::kFullBytes * 2, 'x'));
  queue.write_some();
  EXPECT_TRUE(queue.pending());
  EXPECT_TRUE(queue.full());
}

TEST(OutputQueue, ALostReaderIsToldOnceAndDropsTheRest) {
  ::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd writer(ends[1]);
  UniqueFd(ends[0]).close();
  OutputQueue queue(writer.get());
  queue.append("x");
  queue.write_some();
  EXPECT_EQ(queue.error(), EPIPE);
  queue.append("y");
  EXPECT_FALSE(queue.pending());
}

}  // namespace
}  // namespace strata::launcher
