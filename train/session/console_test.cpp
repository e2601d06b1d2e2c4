// Checks what a terminal shows after lines, messages and rewritten progress lines, with a small
// terminal that takes bytes as a real one would.
#include "train/session/console.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <regex>
#include <thread>

#include "train/session/progress.h"

namespace strata::train {
namespace {

/// The lines on a screen of this width; both streams of a program write to it.
class Terminal {
 public:
  explicit Terminal(int columns) : columns_(columns) {}
  void take(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == '\n') {
        lines_.emplace_back();
        at_ = 0;
      } else if (bytes[i] == '\r') {
        at_ = 0;
      } else if (bytes.substr(i, 3) == "\033[K") {
        lines_.back().resize(at_);
        i += 2;
      } else {
        if (static_cast<int>(at_) == columns_) {
          wrapped_ = true;
          lines_.emplace_back();
          at_ = 0;
        }
        if (lines_.back().size() <= at_) lines_.back().resize(at_ + 1);
        lines_.back()[at_++] = bytes[i];
      }
    }
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  [[nodiscard]] bool wrapped() const { return wrapped_; }

 private:
  int columns_;
  std::vector<std::string> lines_{""};
  std::size_t at_ = 0;
  bool wrapped_ = false;
};

/// A console whose two streams go to one file, as both go to one terminal.
class Shown {
 public:
  explicit Shown(int columns, bool terminal = true, int rank = 0)
      : columns_(columns), file_(std::tmpfile(), std::fclose) {
    console_ = std::make_unique<Console>(
        ConsoleStreams{file_.get(), file_.get(), terminal, terminal, [this] { return columns_; }},
        rank);
  }
  Console& operator*() { return *console_; }
  Console* operator->() { return console_.get(); }
  void resize(int columns) { columns_ = columns; }
  [[nodiscard]] std::string bytes() const {
    std::string text(static_cast<std::size_t>(std::ftell(file_.get())), '\0');
    std::rewind(file_.get());
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_.get()), text.size());
    return text;
  }
  [[nodiscard]] Terminal screen() const {
    Terminal terminal(columns_);
    terminal.take(bytes());
    return terminal;
  }

 private:
  int columns_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::unique_ptr<Console> console_;
};

StepDone report(std::int64_t step, std::int64_t steps = 0) {
  StepDone r;
  r.step = step;
  r.steps = steps;
  r.metrics.loss = 3.01991;
  r.metrics.learning_rate = 1e-3;
  r.metrics.gradient_norm = 1.5421;
  r.seconds = r.smoothed_seconds = 2;
  r.tokens_per_second = r.smoothed_tokens_per_second = 30958;
  r.flops_per_second = 6e14;
  r.mfu = 0.593;
  r.arena_bytes = 203'000'000;
  r.peak_rss_bytes = 388'000'000;
  return r;
}

TEST(Console, MessagesStandOnLinesOfTheirOwnAboveTheProgressLine) {
  for (const int columns : {80, 100, 170}) {
    Shown shown(columns);
    Progress progress(*shown, {});
    for (int step = 1; step <= 400; ++step) {
      progress.show(report(step, 400));
      if (step == 100) shown->print("wrote out/step-00000100");
      if (step == 200) shown->note("a note");
      if (step == 300) shown->warn("a warning");
    }
    progress.finish();
    shown->print("done");
    const Terminal screen = shown.screen();
    EXPECT_FALSE(screen.wrapped()) << columns;
    ASSERT_EQ(screen.lines().size(), 6u) << columns;
    EXPECT_EQ(screen.lines()[0], "wrote out/step-00000100");
    EXPECT_EQ(screen.lines()[1], "note: a note");
    EXPECT_EQ(screen.lines()[2], "warning: a warning");
    EXPECT_TRUE(
        screen.lines()[3].starts_with("step 400/400  loss 3.0199  30958 tokens/s  left 0 s"))
        << screen.lines()[3];
    EXPECT_LT(screen.lines()[3].size(), static_cast<std::size_t>(columns));
    EXPECT_EQ(screen.lines()[4], "done");
  }
}

TEST(Console, WhatMattersMostStaysOnNarrowScreens) {
  const auto line = [](int columns) {
    return fit_fields(progress_fields(report(34, 200)), columns);
  };
  EXPECT_EQ(line(79), "step 34/200  loss 3.0199  30958 tokens/s  left 5 min 32 s  lr 0.001");
  EXPECT_EQ(line(99),
            "step 34/200  loss 3.0199  30958 tokens/s  left 5 min 32 s  lr 0.001  grad norm 1.542  "
            "MFU 59.3 %");
  EXPECT_EQ(line(169),
            "step 34/200  loss 3.0199  30958 tokens/s  left 5 min 32 s  lr 0.001  grad norm 1.542  "
            "MFU 59.3 %  arena 193.60 MiB  peak 370.03 MiB  600000.0 GFLOP/s per rank");
  EXPECT_EQ(line(0), line(1000));
  EXPECT_EQ(line(12), "step 34/200");
  EXPECT_EQ(line(6), "step 3");
}

TEST(Console, CharactersOfSeveralBytesCountOnce) {
  EXPECT_EQ(fit_fields({"l\u00e4\u00df"}, 2), "l\u00e4");
  EXPECT_EQ(fit_fields({"\u00e4", "\u00df"}, 4), "\u00e4  \u00df");
}

TEST(Console, TheLineFollowsTheWindow) {
  Shown shown(170);
  shown->show_progress({"step 1", std::string(100, 'x'), "last"});
  shown.resize(30);
  shown->print("narrow");
  const Terminal screen = [&] {
    Terminal wide(170);
    wide.take(shown.bytes());
    return wide;
  }();
  EXPECT_EQ(screen.lines(), (std::vector<std::string>{"narrow", "step 1"}));
}

TEST(Console, ALogHasStampedLinesAndNoEscapes) {
  Shown shown(0, false);
  Progress progress(*shown, {.log_every = std::chrono::seconds(0)});
  for (int step = 1; step <= 50; ++step) progress.show(report(step, 50));
  progress.finish();
  EXPECT_TRUE(std::regex_match(
      shown.bytes(),
      std::regex(R"((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  step (1|50)/50  loss 3\.0199 .*\n){2})")))
      << shown.bytes();
}

TEST(Console, ALogSpeaksByTheClock) {
  Shown shown(0, false);
  Progress progress(*shown, {.log_every = std::chrono::seconds(1)});
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2300);
  for (int step = 1; std::chrono::steady_clock::now() < end; ++step) {
    progress.show(report(step, 1000));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  progress.finish();  // prints the last step before a stop, too
  const std::string bytes = shown.bytes();
  EXPECT_EQ(std::ranges::count(bytes, '\n'), 4) << bytes;
}

TEST(Console, AnEvaluationIsSeenWhileItLasts) {
  Shown log(0, false);
  Progress lines(*log, {.log_every = std::chrono::seconds(1)});
  lines.show(report(1, 9));
  lines(Evaluating{1, 9, 0, 20});
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  lines(Evaluating{1, 9, 1, 20});
  lines(Evaluating{1, 9, 2, 20});
  const std::string bytes = log.bytes();
  EXPECT_EQ(std::ranges::count(bytes, '\n'), 2) << bytes;
  EXPECT_NE(bytes.find("step 1/9  evaluating, batch 2/20\n"), std::string::npos) << bytes;

  Shown shown(80);
  Progress screen(*shown, {});
  screen(Evaluating{1, 9, 0, 20});
  EXPECT_EQ(shown.screen().lines(), (std::vector<std::string>{"step 1/9  evaluating, batch 1/20"}));
  screen(Evaluated{1, 9, 2.5});
  screen.finish();
  EXPECT_EQ(shown.screen().lines(),
            (std::vector<std::string>{"step 1/9  held-out loss 2.5000", ""}));
}

TEST(Console, AFailureLeavesTheLastStepOnTheScreen) {
  Shown shown(80);
  shown->show_progress({"step 3/9"});
  shown->fail("no more memory");
  EXPECT_EQ(shown.screen().lines(),
            (std::vector<std::string>{"step 3/9", "train: no more memory", ""}));
}

TEST(Console, OtherRanksAreHeardWhenTheyFailOnly) {
  Shown shown(80, true, 1);
  shown->print("a");
  shown->note("b");
  shown->warn("c");
  shown->show_progress({"d"});
  shown->end_progress();
  shown->fail("e");
  EXPECT_EQ(shown.bytes(), "\r\033[Ktrain: e\n");
}

TEST(Console, ThreadsDoNotMixTheirLines) {
  Shown shown(80);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          shown->print("a whole line");
          shown->show_progress({"step"});
        }
      });
  }
  shown->end_progress();
  const Terminal screen = shown.screen();
  ASSERT_EQ(screen.lines().size(), 802u);
  for (int line = 0; line < 800; ++line) EXPECT_EQ(screen.lines()[line], "a whole line");
}

TEST(Duration, IsSaidInUnitsOfItsSize) {
  EXPECT_EQ(format_duration(0.4), "0 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(310), "5 min 10 s");
  EXPECT_EQ(format_duration(2400), "40 min");
  EXPECT_EQ(format_duration(12300), "3 h 25 min");
  EXPECT_EQ(format_duration(187200), "2 d 4 h");
  EXPECT_EQ(format_duration(1e300), "?");
}

}  // namespace
}  // namespace strata::train
