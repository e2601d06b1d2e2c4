// Questions of mlaunch status, stop and logs to a run on another host.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "launcher/wire/grpc/testing/control_wire_rig.h"
#include "launcher/wire/grpc/view_client.h"

namespace strata::launcher {
namespace {

/// A run that is asked from elsewhere.
class ViewWireTest : public ControlWireTest {
 protected:
  std::unique_ptr<ViewClient> client(const RunSecret& with) {
    return std::make_unique<ViewClient>(ViewSettings{"localhost", port_, with, "keys/run"});
  }
  /// Asks, and answers as the run does; returns the answer.
  std::optional<std::string> asked(ViewClient& client, const ViewQuestion& question,
                                   const std::string& answer) {
    const auto call = client.ask(question);
    const auto heard = at_server_->next<ViewAsked>();
    if (!heard || !(heard->question == question)) return "another question";
    server_->answer(heard->number, answer);
    return call->wait(kHangs) ? call->answer() : "no answer";
  }
};

TEST_F(ViewWireTest, QuestionsArriveAsTheyWereAsked) {
  listen();
  const auto client = this->client(secret());
  for (const ViewQuestion& question :
       {ViewQuestion(AskStatus{}), ViewQuestion(AskStop{}), ViewQuestion(AskStop{true}),
        ViewQuestion(AskEnd{}), ViewQuestion(AskLogs{}),
        ViewQuestion(AskLogs{.rank = 0, .number = 7, .from_end = true, .follow = true})})
    EXPECT_EQ(asked(*client, question, "{}\xff"), "{}\xff");
}

TEST_F(ViewWireTest, WhoGoesIsToldAndMayBeAnswered) {
  listen();
  const auto client = this->client(secret());
  auto call = client->ask(AskEnd{});
  const auto heard = at_server_->next<ViewAsked>();
  ASSERT_TRUE(heard);
  EXPECT_FALSE(call->wait(milliseconds(50)));
  call.reset();
  const auto left = at_server_->next<ViewLeft>();
  ASSERT_TRUE(left);
  EXPECT_EQ(left->number, heard->number);
  server_->answer(heard->number, "late");
  server_->answer(77, "nobody");
}

TEST_F(ViewWireTest, LastAnswersArriveBeforeTheEnd) {
  listen();
  const auto client = this->client(secret());
  const auto end = client->ask(AskEnd{}), other = client->ask(AskLogs{});
  const auto first = at_server_->next<ViewAsked>(), second = at_server_->next<ViewAsked>();
  ASSERT_TRUE(first && second);
  for (const auto& question : {*first, *second})
    if (std::holds_alternative<AskEnd>(question.question))
      server_->answer(question.number, std::string(1'000'000, 'x'));
  server_->close(kHangs);
  ASSERT_TRUE(end->wait(kHangs));
  EXPECT_EQ(end->answer().value_or("").size(), 1'000'000U);
  ASSERT_TRUE(other->wait(kHangs));
  EXPECT_EQ(other->answer(), std::nullopt) << "it has ended";
}

TEST_F(ViewWireTest, OtherSecretsAndNobodyAreErrors) {
  const auto failure = [&](const RunSecret& with) -> std::string {
    const auto client = this->client(with);
    const auto call = client->ask(AskStatus{});
    if (!call->wait(kHangs)) return "no answer";
    try {
      return call->answer().value_or("ended");
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.exit_code())) + " " + error.what();
    }
  };
  const std::string place = "at localhost:" + std::to_string(port_);
  EXPECT_EQ(failure(secret()), "69 no run answers " + place + ": nobody listens there");
  listen();
  RunSecret other = secret();
  other.token[0] = other.token[0] == 'a' ? 'b' : 'a';
  const auto differs = [&](const std::string& part) {
    return "78 the secret in keys/run is not that of the run " + place + " (the " + part +
           " differs); give --run-secret the file that the run was given, or a copy of it";
  };
  EXPECT_EQ(failure(other), differs("token"));
  EXPECT_EQ(failure(make_secret()), differs("certificate"));
  EXPECT_FALSE(at_server_->next<ViewAsked>(milliseconds(50))) << "the run hears none of them";
}

TEST_F(ViewWireTest, AnAnswerThatIsTooLargeIsSaidToBe) {
  listen();
  const auto client = this->client(secret());
  const auto call = client->ask(AskStatus{});
  const auto heard = at_server_->next<ViewAsked>();
  ASSERT_TRUE(heard);
  server_->answer(heard->number, std::string(kMostAnswerBytes + (1 << 20), 'x'));
  ASSERT_TRUE(call->wait(kHangs));
  try {
    (void)call->answer();
    FAIL();
  } catch (const HostError& error) {
    EXPECT_NE(std::string(error.what()).find("has 17 MiB, and 16 are the most"), std::string::npos)
        << error.what();
  }
}

TEST_F(ViewWireTest, QuestionsHaveALimit) {
  listen();
  const auto client = this->client(secret());
  std::vector<std::unique_ptr<ViewCall>> calls;
  for (std::size_t i = 0; i < ViewCalls::kMost; ++i) calls.push_back(client->ask(AskEnd{}));
  for (std::size_t i = 0; i < ViewCalls::kMost; ++i) ASSERT_TRUE(at_server_->next<ViewAsked>());
  const auto one_more = client->ask(AskStatus{});
  ASSERT_TRUE(one_more->wait(kHangs));
  EXPECT_THROW((void)one_more->answer(), HostError);
  calls.clear();
  ASSERT_TRUE(at_server_->next<ViewLeft>());
}

}  // namespace
}  // namespace strata::launcher
