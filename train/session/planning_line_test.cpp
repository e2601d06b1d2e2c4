// Checks what a screen and a log show while settings are searched.
#include "train/session/planning_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace strata::train {
namespace {

using ::testing::ElementsAre;

/// A console whose output is kept.
class PlanningLineTest : public testing::Test {
 protected:
  Console console(bool is_terminal) {
    return Console({.output = file_.get(),
                    .error = file_.get(),
                    .output_is_terminal = is_terminal,
                    .error_is_terminal = is_terminal});
  }
  std::string printed() {
    std::fflush(file_.get());
    std::rewind(file_.get());
    std::string text(1024, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{std::tmpfile(), std::fclose};
};

TEST_F(PlanningLineTest, RewritesOneLineOfATerminalAndRemovesIt) {
  Console screen = console(true);
  PlanningLine line(screen);
  line.show({.graphs = 7, .seconds = 1.2});
  line.finish();
  EXPECT_EQ(printed(), "\r\033[Kplanning  1 s  7 Graphs built\r\033[K");
}

TEST_F(PlanningLineTest, NotesOnceInALogThatPlanningGoesOn) {
  Console log = console(false);
  PlanningLine line(log);
  line.show({.graphs = 7, .seconds = 9.9});
  line.show({.graphs = 80, .seconds = 10.1});
  line.show({.graphs = 90, .seconds = 20});
  line.finish();
  EXPECT_EQ(printed(), "note: planning goes on after 10 s: 80 Graphs built\n");
}

TEST(PlanningBeatTest, CountsGraphsOfAllThreadsAndTellsTheEnd) {
  std::vector<std::int64_t> heard;
  int further = 0;
  {
    const PlanningBeat planning(
        [&](const auto& progress) { heard.push_back(progress ? progress->graphs : -1); },
        Beat([&] { ++further; }));
    const Beat copy = planning.beat();
    planning.beat()();
    copy();
    std::thread([&] { copy(); }).join();  // is counted, and heard of with the next one
    copy();
  }
  EXPECT_EQ(further, 4);
  EXPECT_THAT(heard, ElementsAre(1, 2, 4, -1));
}

}  // namespace
}  // namespace strata::train
