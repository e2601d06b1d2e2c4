// Which agents may take part in a run, and what those are told that may not.
#include <string>
#include <utility>
#include <vector>

#include "launcher/wire/grpc/channel.h"
#include "launcher/wire/grpc/stream_metadata.h"
#include "launcher/wire/grpc/testing/control_wire_rig.h"
#include "launcher/wire/stranger_filter.h"

namespace strata::launcher {
namespace {

// Faults 31, 35.
TEST_F(ControlWireTest, WhoDoesNotBelongToTheRunIsRefused) {
  listen();
  AttachSettings wrong = attach_settings();
  wrong.secret.token = std::string(64, '0');
  const auto differs = [this](const std::string& part) {
    return "the secret in keys/copy is not that of the run at 127.0.0.1:" + std::to_string(port_) +
           " (the " + part +
           " differs); compare it with the --run-secret file of host 0, and give all hosts the "
           "same";
  };
  EXPECT_EQ(refusal_of(wrong), differs("token"));
  wrong = attach_settings();
  wrong.secret.certificate = make_secret().certificate;
  EXPECT_EQ(refusal_of(wrong), differs("certificate"));
  wrong.secret_file = "-";
  EXPECT_EQ(refusal_of(wrong), "another run listens at 127.0.0.1:" + std::to_string(port_) +
                                   ": the secret from standard input is not its own (the "
                                   "certificate differs)");
  wrong = attach_settings();
  wrong.facts.build = "Strata 0.2";
  EXPECT_EQ(refusal_of(wrong),
            "this host has Strata 0.2, the coordinator 0.1; install the same Strata everywhere");
  EXPECT_EQ(server_->settle_run(), kRun);
  wrong = attach_settings();
  wrong.run_id = kEarlierRun;
  const Hello after_ranks{.host = "a", .agent = "1", .has_had_ranks = true};
  EXPECT_NE(refusal_of(wrong, after_ranks).find("this host has taken part in run fedcba98"),
            std::string::npos);
  wrong = attach_settings();
  wrong.facts.options[0].value = "3";
  EXPECT_NE(refusal_of(wrong).find("told --nnodes 3, the coordinator 2"), std::string::npos);
  wrong = attach_settings();
  for (const auto& [command, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"train", "--zero", "2"}, ": --zero is '2' on this host and '3' there"},
           {{"plan", "--zero", "3"}, ": the program is 'plan' on this host and 'train' there"},
           {{"train", "--zero=3"},
            ": an option is written '--zero=3' on this host and '--zero 3' there"},
           {{"train", "--zero"},
            ": what follows '--zero' is nothing on this host and '3' there"}}) {
    wrong.facts.command = command;
    EXPECT_NE(refusal_of(wrong).find(said), std::string::npos) << refusal_of(wrong);
  }
  attach(attach_settings());
  ASSERT_TRUE(at_agent_->next<Connected>());
  client_->send(SendToCoordinator{Hello{.host = "c", .agent = "1"}});
  const auto stranger = at_agent_->next<NotWelcome>();
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->exit_code, 78);
  EXPECT_NE(stranger->reason.find("hosts a to b, and this is c"), std::string::npos);
  EXPECT_FALSE(at_server_->next<AgentSaid>(milliseconds(100)));
}

// Fault 35.
TEST_F(ControlWireTest, TheCoordinatorHearsWhomItHasRefusedAndWhy) {
  listen();
  AttachSettings wrong = attach_settings();
  wrong.facts.build = "Strata 0.2";
  attach(wrong);
  ASSERT_TRUE(at_agent_->next<Connected>());
  client_->send(SendToCoordinator{Hello{.host = "b", .agent = "1", .host_name = "gpu-2"}});
  const auto refused = at_server_->next<HostRefused>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->host, "b");
  EXPECT_EQ(refused->host_name, "gpu-2");
  EXPECT_EQ(refused->address, "127.0.0.1");
  EXPECT_EQ(refused->why, "it has Strata 0.2, this host 0.1; install the same Strata everywhere");
}

// Fault 35.
TEST_F(ControlWireTest, TheCoordinatorHearsOfAHostWithAnotherSecret) {
  for (const bool is_token : {true, false}) {
    server_.reset();
    listen();
    AttachSettings wrong = attach_settings();
    if (is_token)
      wrong.secret.token = std::string(64, '0');
    else
      wrong.secret.certificate = make_secret().certificate;
    EXPECT_NE(refusal_of(wrong).find("is not that of the run at"), std::string::npos);
    const auto stranger = at_server_->next<StrangerRefused>();
    ASSERT_TRUE(stranger);
    EXPECT_EQ(stranger->address, "127.0.0.1");
  }
}

// Fault 31.
TEST_F(ControlWireTest, AFloodOfStrangersIsOneWord) {
  listen();
  const auto stub =
      proto::Control::NewStub(make_channel({.target = "127.0.0.1:" + std::to_string(port_),
                                            .certificate = secret().certificate,
                                            .most_bytes = kMostMessageBytes}));
  const auto calls_without_secret = [&](int calls) {
    for (int call = 0; call < calls; ++call) {
      grpc::ClientContext context;
      context.AddMetadata(kTokenMetadata, std::to_string(call));
      ASSERT_EQ(stub->Attach(&context)->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
    }
  };
  calls_without_secret(2000);
  const std::vector<WireEvent> told = server_->take();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(std::get<StrangerRefused>(told[0]).address, "127.0.0.1");
  EXPECT_EQ(refusal_of(attach_settings()), "let in");
  calls_without_secret(10);
  EXPECT_TRUE(at_server_->next<StrangerRefused>()) << "another one, beside the host";
  EXPECT_FALSE(at_server_->next<StrangerRefused>(milliseconds(50)));
}

// Fault 31.
TEST(StrangerFilter, LetsThroughOneCallOfFewAddresses) {
  StrangerFilter filter;
  std::size_t news = 0;
  for (int again = 0; again < 3; ++again)
    for (int address = 0; address < 1000; ++address)
      news += filter.is_news("10.0.0." + std::to_string(address)) ? 1U : 0U;
  EXPECT_EQ(news, kMostRefused);
  filter.let_in("10.0.0.7");
  EXPECT_FALSE(filter.is_news("10.0.0.8"));
  EXPECT_TRUE(filter.is_news("10.0.1.1"));
  EXPECT_FALSE(filter.is_news("10.0.1.2"));
}

TEST_F(ControlWireTest, ASecondAgentOfAHostIsRefusedWhileTheFirstAnswers) {
  listen();
  attach(attach_settings());
  say_hello();
  ASSERT_TRUE(at_server_->next<AgentSaid>());
  AgentClient second(attach_settings());
  Ear at_second(second);
  ASSERT_TRUE(at_second.next<Connected>());
  second.send(SendToCoordinator{Hello{.host = "a", .agent = "2"}});
  const auto refused = at_second.next<NotWelcome>();
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->reason.find("host a is there already"), std::string::npos);
  EXPECT_EQ(refused->exit_code, 75) << "the first may have died, unseen";
  client_.reset();
  ASSERT_TRUE(at_server_->next<ConnectionBroke>());
  EXPECT_EQ(refusal_of(attach_settings()), "let in");
}

// Fault 13.
TEST_F(ControlWireTest, ACoordinatorThatWasStartedAnewGoesOnWithTheRunOfAnAgent) {
  listen();
  attach(attach_settings());
  say_hello();
  ASSERT_EQ(at_agent_->next<Welcomed>().value().run_id, kRun);
  AttachSettings of_before = attach_settings();
  of_before.run_id = kEarlierRun;
  AgentClient other(of_before);
  Ear at_other(other);
  ASSERT_TRUE(at_other.next<Connected>());
  other.send(
      SendToCoordinator{Hello{.host = "b", .agent = "1", .newest = 4, .has_had_ranks = true}});
  EXPECT_EQ(at_other.next<Welcomed>().value().run_id, kEarlierRun);
  EXPECT_EQ(at_agent_->next<Welcomed>().value().run_id, kEarlierRun)
      << "the first one is told, too";
  EXPECT_EQ(at_server_->next<RunTakenUp>().value().run_id, kEarlierRun);
  EXPECT_EQ(server_->settle_run(), kEarlierRun);
  AttachSettings third = attach_settings();
  third.run_id = kStrangeRun;
  const Hello after_ranks{.host = "a", .agent = "1", .has_had_ranks = true};
  EXPECT_NE(refusal_of(third, after_ranks).find("the coordinator has begun run fedcba98"),
            std::string::npos);
}

// Fault 13.
TEST_F(ControlWireTest, OnlyHostsThatHaveHadRanksSettleWhichRunGoesOn) {
  listen();
  const auto welcome_of = [this](const std::string& run_id, const Hello& hello) {
    AttachSettings settings = attach_settings();
    settings.run_id = run_id;
    attach(settings);
    say_hello(hello);
    const auto told = at_agent_->next_of<Welcomed, NotWelcome>().value();
    const auto* welcome = std::get_if<Welcomed>(&told);
    return welcome ? welcome->run_id : std::get<NotWelcome>(told).reason;
  };
  const Hello fresh{.host = "a", .agent = "1"};
  EXPECT_EQ(welcome_of(kRun, fresh), kRun) << "one whose connection broke";
  EXPECT_EQ(welcome_of(kStrangeRun, fresh), kStrangeRun) << "a spare may be all that is left";
  EXPECT_EQ(welcome_of(kRun, fresh), kStrangeRun) << "it knows less than the spare";
  EXPECT_EQ(welcome_of(kEarlierRun, {.host = "b", .agent = "1", .has_had_ranks = true}),
            kEarlierRun);
  EXPECT_EQ(welcome_of(kStrangeRun, fresh), kEarlierRun) << "it has no ranks of another one";
  EXPECT_EQ(server_->settle_run(), kEarlierRun);
}

// Fault 13.
TEST_F(ControlWireTest, AHostThatHasHadRanksWaitsForTheCoordinatorOfItsRun) {
  listen();
  AttachSettings of_before = attach_settings();
  of_before.run_id = kEarlierRun;
  of_before.facts.command = {"train", "--zero", "2"};
  attach(of_before);
  const Hello hello{.host = "a", .agent = "1", .newest = 0, .has_had_ranks = true};
  for (const bool has_ended : {false, true}) {
    if (has_ended) server_->end_run(78);
    ASSERT_TRUE(at_agent_->next<Connected>()) << "it tries again";
    client_->send(SendToCoordinator{hello});
    const auto refused = at_agent_->next<NotWelcome>();
    ASSERT_TRUE(refused);
    EXPECT_TRUE(refused->may_wait);
    EXPECT_NE(refused->reason.find("--zero is '2' on this host and '3' there"), std::string::npos);
  }
  EXPECT_TRUE(at_server_->next<HostRefused>().value().is_of_earlier_run);
  client_.reset();
  server_.reset();
  listen();
  EXPECT_EQ(server_->settle_run(), kRun);
  attach(of_before);
  ASSERT_TRUE(at_agent_->next<Connected>());
  client_->send(SendToCoordinator{hello});
  EXPECT_FALSE(at_server_->next<HostRefused>().value().is_of_earlier_run) << "this one has begun";
}

TEST_F(ControlWireTest, AHostThatHasHadNoRanksDoesNotWaitForAnotherCoordinator) {
  listen();
  AttachSettings wrong = attach_settings();
  wrong.facts.command = {"train", "--zero", "2"};
  attach(wrong);
  // A spare knows of attempts, too.
  say_hello({.host = "a", .agent = "1", .newest = 3});
  EXPECT_FALSE(at_agent_->next<NotWelcome>().value().may_wait);
  EXPECT_FALSE(at_server_->next<HostRefused>().value().is_of_earlier_run);
}

TEST_F(ControlWireTest, WhoComesAfterTheEndOfTheRunIsToldItsCode) {
  const std::vector<std::pair<int, std::string>> endings{{93, "the run has ended with code 93"},
                                                         {0, "the run has ended"}};
  for (const auto& [code, reason] : endings) {
    client_.reset();
    server_.reset();
    listen();
    server_->end_run(code);
    attach(attach_settings());
    ASSERT_TRUE(at_agent_->next<Connected>());
    client_->send(SendToCoordinator{Hello{.host = "a", .agent = "1"}});
    const auto refused = at_agent_->next<NotWelcome>();
    ASSERT_TRUE(refused) << code;
    EXPECT_EQ(refused->exit_code, code);
    EXPECT_EQ(refused->reason, reason);
    EXPECT_FALSE(at_server_->next<HostRefused>(milliseconds(50))) << "nobody is to do anything";
  }
}

}  // namespace
}  // namespace strata::launcher
