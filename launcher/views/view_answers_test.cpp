#include "launcher/views/view_answers.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

TEST(ViewAnswers, WhatHasNoAnswerYetIsAnsweredAtTheEnd) {
  const ViewAnswers answers{[] { return std::string("status"); },
                            [](bool now) { return std::string(now ? "now" : "asked"); },
                            [](const AskLogs& asked, bool ended) {
                              return asked.follow && !ended ? std::nullopt
                                                            : std::optional<std::string>("lines");
                            }};
  EXPECT_EQ(answer_view(answers, AskStatus{}), "status");
  EXPECT_EQ(answer_view(answers, AskStop{true}), "now");
  EXPECT_EQ(answer_view(answers, AskLogs{}), "lines");
  EXPECT_EQ(answer_view(answers, AskLogs{.follow = true}), std::nullopt);
  EXPECT_EQ(answer_view(answers, AskEnd{}), std::nullopt);
  EXPECT_EQ(last_answer(answers, AskLogs{.follow = true}, "end"), "lines");
  EXPECT_EQ(last_answer(answers, AskEnd{}, "end"), "end");
}

TEST(ViewAnswers, LinesAreToldWithWhoseTheyAre) {
  LogAnswer answer{.run_id = "r", .piece = {}, .waiting_for = {"1 (gpu-07)"}, .ended = true};
  answer.piece = {.lines = {{3, 1, OutputKind::standard_error, "a\"\xff"}, {.text = "mlaunch: x"}},
                  .next = 9,
                  .dropped = 2,
                  .end = 10};
  EXPECT_EQ(logs_json(answer),
            "{\"version\":1,\"run\":\"r\",\"next\":9,\"dropped\":2,\"more\":true,\"ended\":true,"
            "\"waiting_for\":[\"1 (gpu-07)\"],\"lines\":[{\"rank\":3,\"attempt\":1,\"stream\":"
            "\"stderr\",\"text\":\"a\\\"\xef\xbf\xbd\"},{\"rank\":null,\"attempt\":null,"
            "\"stream\":\"stdout\",\"text\":\"mlaunch: x\"}]}");
}

}  // namespace
}  // namespace strata::launcher
