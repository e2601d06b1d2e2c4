#include "launcher/control/view_question.h"

#include <gtest/gtest.h>

#include <vector>

namespace strata::launcher {
namespace {

TEST(ViewQuestion, IsReadAsItWasWritten) {
  const std::vector<std::pair<ViewQuestion, std::string>> all{
      {AskStatus{}, "status"},
      {AskStop{}, "stop"},
      {AskStop{true}, "stop now"},
      {AskEnd{}, "wait"},
      {AskLogs{.number = 7}, "logs all 7"},
      {AskLogs{.rank = 3, .from_end = true, .follow = true}, "follow 3 -0"},
      {AskLogs{.rank = 0, .number = 20, .from_end = true}, "logs 0 -20"}};
  for (const auto& [question, line] : all) {
    EXPECT_EQ(format_view_question(question), line);
    EXPECT_TRUE(parse_view_question(line) == question) << line;
  }
}

TEST(ViewQuestion, IsNothingElse) {
  for (const char* line :
       {"", "STOP", "stop  now", "stop later", "status ", "logs", "logs all", "logs all ",
        "logs  0", "logs 0 1 ", "logs 0 1 2", "logs x 1", "logs all x", "logs all --1",
        "logs 4294967296 0", "logs -3 0", "logs 0 99999999999999999999", "follow", "waits"})
    EXPECT_FALSE(parse_view_question(line)) << line;
}

}  // namespace
}  // namespace strata::launcher
