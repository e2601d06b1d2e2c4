// Coordinator and agents over real connections on this host.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/unique_fd.h"
#include "launcher/command/free_port.h"
#include "launcher/wire/grpc/agent_client.h"
#include "launcher/wire/grpc/coordinator_server.h"
#include "launcher/wire/grpc/make_secret.h"
#include "launcher/wire/grpc/quiet_log.h"
#include "launcher/wire/grpc/view_client.h"

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;

constexpr const char* kRun = "0123456789abcdef";
constexpr const char* kEarlierRun = "fedcba9876543210";
constexpr const char* kStrangeRun = "5555555555555555";

/// Keeps what a wire tells until a test looks for it.
class Ear {
 public:
  explicit Ear(ControlWire& wire) : wire_(wire) {}

  /// Waits for the next event of a kind; those of others stay.
  template <typename Event>
  std::optional<Event> next(milliseconds limit = milliseconds(10'000)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
      for (auto at = events_.begin(); at != events_.end(); ++at) {
        if (!std::holds_alternative<Event>(*at)) continue;
        const Event found = std::get<Event>(std::move(*at));
        events_.erase(at);
        return found;
      }
      const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return {};
      pollfd entry{wire_.poll_fd(), POLLIN, 0};
      if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0) continue;
      for (WireEvent& event : wire_.take()) events_.push_back(std::move(event));
    }
  }

 private:
  ControlWire& wire_;
  std::vector<WireEvent> events_;
};

class ControlWireTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { silence_grpc(); }
  static const RunSecret& secret() {
    static const RunSecret kSecret = make_secret();
    return kSecret;
  }
  ListenSettings listen_settings() const {
    return {"127.0.0.1", port_, secret(), facts(), {"a", "b"}, {kRun, "127.0.0.1", 29500}, true};
  }
  AttachSettings attach_settings() const {
    RunSecret for_agents = secret();
    for_agents.key.clear();
    return {"127.0.0.1", port_, for_agents, facts(), ""};
  }
  static AgreedFacts facts() {
    return {"Strata 0.1", {{"--nnodes", "2"}}, {"train", "--zero", "3"}};
  }
  void listen() {
    server_ = std::make_unique<CoordinatorServer>(listen_settings());
    at_server_ = std::make_unique<Ear>(*server_);
  }
  void attach(const AttachSettings& settings) {
    client_ = std::make_unique<AgentClient>(settings);
    at_agent_ = std::make_unique<Ear>(*client_);
  }
  /// Says Hello once the connection stands.
  void say_hello() {
    ASSERT_TRUE(at_agent_->next<Connected>());
    client_->send(SendToCoordinator{Hello{.host = "a", .agent = "1", .slots = 2}});
  }
  /// The reason for which an agent is not let in.
  std::string refusal_of(const AttachSettings& settings) {
    attach(settings);
    if (at_agent_->next<Connected>(milliseconds(300)))
      client_->send(SendToCoordinator{Hello{.host = "a", .agent = "1"}});
    const auto refused = at_agent_->next<NotWelcome>();
    return refused ? refused->reason : "let in";
  }

  int port_ = find_free_port();
  std::unique_ptr<CoordinatorServer> server_;
  std::unique_ptr<Ear> at_server_;
  std::unique_ptr<AgentClient> client_;
  std::unique_ptr<Ear> at_agent_;
};

TEST_F(ControlWireTest, CarriesWordsBothWays) {
  listen();
  attach(attach_settings());
  say_hello();
  const auto hello = at_server_->next<AgentSaid>();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->agent, "1");
  EXPECT_EQ(std::get<Hello>(hello->message).slots, 2);
  const auto welcome = at_agent_->next<Welcomed>();
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->run_id, kRun);
  EXPECT_EQ(welcome->master_port, 29500);
  for (int i = 0; i < 100; ++i) client_->send(SendToCoordinator{Heartbeat{.number = i}});
  for (int i = 0; i < 100; ++i) {
    const auto beat = at_server_->next<AgentSaid>();
    ASSERT_TRUE(beat);
    EXPECT_EQ(std::get<Heartbeat>(beat->message).number, i);
    server_->send(SendToAgent{"a", "1", Lease{i, 0}});
  }
  for (int i = 0; i < 100; ++i) {
    const auto said = at_agent_->next<CoordinatorSaid>();
    ASSERT_TRUE(said);
    EXPECT_EQ(std::get<Lease>(said->message), (Lease{i, 0}));
  }
}

// Fault 11.
TEST_F(ControlWireTest, AnAgentComesBackAfterItsCoordinatorHasListenedAnew) {
  attach(attach_settings());
  EXPECT_TRUE(at_agent_->next<CoordinatorOutOfReach>());
  listen();
  say_hello();
  ASSERT_TRUE(at_server_->next<AgentSaid>());
  server_.reset();
  EXPECT_TRUE(at_agent_->next<CoordinatorOutOfReach>());
  listen();
  say_hello();
  const auto hello = at_server_->next<AgentSaid>();
  ASSERT_TRUE(hello);
  EXPECT_TRUE(std::holds_alternative<Hello>(hello->message));
}

/// An agent beats whenever its time has come, on a new connection, too.
TEST_F(ControlWireTest, NothingIsSaidBeforeHello) {
  listen();
  attach(attach_settings());
  ASSERT_TRUE(at_agent_->next<Connected>());
  client_->send(SendToCoordinator{Heartbeat{.number = 1}});
  client_->send(SendToCoordinator{Hello{.host = "a", .agent = "1"}});
  client_->send(SendToCoordinator{Heartbeat{.number = 2}});
  const auto hello = at_server_->next<AgentSaid>(), beat = at_server_->next<AgentSaid>();
  ASSERT_TRUE(hello && beat);
  EXPECT_TRUE(std::holds_alternative<Hello>(hello->message));
  EXPECT_EQ(std::get<Heartbeat>(beat->message).number, 2);
  EXPECT_FALSE(at_agent_->next<NotWelcome>(milliseconds(100)));
}

TEST_F(ControlWireTest, TheEndOfAnAgentIsNoticed) {
  listen();
  attach(attach_settings());
  say_hello();
  ASSERT_TRUE(at_server_->next<AgentSaid>());
  client_.reset();
  const auto broke = at_server_->next<ConnectionBroke>();
  ASSERT_TRUE(broke);
  EXPECT_EQ(broke->host, "a");
  EXPECT_EQ(broke->agent, "1");
}

TEST_F(ControlWireTest, LastWordsArriveBeforeTheEnd) {
  listen();
  attach(attach_settings());
  say_hello();
  ASSERT_TRUE(at_server_->next<AgentSaid>());
  server_->send(SendToAgent{"a", "1", Dismiss{75, ""}});
  server_->close(milliseconds(2000));
  const auto said = at_agent_->next<CoordinatorSaid>();
  ASSERT_TRUE(said);
  EXPECT_EQ(std::get<Dismiss>(said->message), (Dismiss{75, ""}));
  listen();
  say_hello();
  ASSERT_TRUE(at_server_->next<AgentSaid>());
  client_->send(SendToCoordinator{SignalCame{15}});
  client_->close(milliseconds(2000));
  const auto came = at_server_->next<AgentSaid>();
  ASSERT_TRUE(came);
  EXPECT_EQ(std::get<SignalCame>(came->message).number, 15);
}

// Faults 31, 35.
TEST_F(ControlWireTest, WhoDoesNotBelongToTheRunIsRefused) {
  listen();
  AttachSettings wrong = attach_settings();
  wrong.secret.token = std::string(64, '0');
  EXPECT_NE(refusal_of(wrong).find("another token"), std::string::npos);
  wrong = attach_settings();
  wrong.secret.certificate = make_secret().certificate;
  EXPECT_NE(refusal_of(wrong).find("another certificate"), std::string::npos);
  wrong = attach_settings();
  wrong.facts.build = "Strata 0.2";
  EXPECT_EQ(refusal_of(wrong),
            "this host has Strata 0.2, the coordinator 0.1; install the same Strata everywhere");
  EXPECT_EQ(server_->settle_run(), kRun);
  wrong = attach_settings();
  wrong.run_id = kEarlierRun;
  EXPECT_NE(refusal_of(wrong).find("this host has taken part in run fedcba98"), std::string::npos);
  wrong = attach_settings();
  wrong.facts.options[0].value = "3";
  EXPECT_NE(refusal_of(wrong).find("told --nnodes 3, the coordinator 2"), std::string::npos);
  wrong = attach_settings();
  for (const auto& [command, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"train", "--zero", "2"}, ": --zero is '2' on this host and '3' there"},
           {{"plan", "--zero", "3"}, ": the program is 'plan' on this host and 'train' there"},
           {{"train", "--zero=3"},
            ": what follows 'train' is '--zero=3' on this host and '--zero' there"},
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
  other.send(SendToCoordinator{Hello{.host = "b", .agent = "1", .newest = 4}});
  EXPECT_EQ(at_other.next<Welcomed>().value().run_id, kEarlierRun);
  EXPECT_EQ(at_agent_->next<Welcomed>().value().run_id, kEarlierRun)
      << "the first one is told, too";
  EXPECT_EQ(at_server_->next<RunTakenUp>().value().run_id, kEarlierRun);
  EXPECT_EQ(server_->settle_run(), kEarlierRun);
  AttachSettings third = attach_settings();
  third.run_id = kStrangeRun;
  EXPECT_NE(refusal_of(third).find("the coordinator has begun run fedcba98"), std::string::npos);
}

// Fault 13.
TEST_F(ControlWireTest, AHostThatHasHadRanksWaitsForTheCoordinatorOfItsRun) {
  listen();
  AttachSettings of_before = attach_settings();
  of_before.run_id = kEarlierRun;
  of_before.facts.command = {"train", "--zero", "2"};
  attach(of_before);
  const Hello hello{.host = "a", .agent = "1", .newest = 0};
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
  say_hello();
  EXPECT_FALSE(at_agent_->next<NotWelcome>().value().may_wait);
  EXPECT_FALSE(at_server_->next<HostRefused>().value().is_of_earlier_run);
}

TEST_F(ControlWireTest, WhoComesAfterTheEndOfTheRunIsToldItsCode) {
  listen();
  server_->end_run(93);
  attach(attach_settings());
  ASSERT_TRUE(at_agent_->next<Connected>());
  client_->send(SendToCoordinator{Hello{.host = "a", .agent = "1"}});
  const auto refused = at_agent_->next<NotWelcome>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->exit_code, 93);
  EXPECT_EQ(refused->reason, "the run has ended with code 93");
  EXPECT_FALSE(at_server_->next<HostRefused>(milliseconds(50))) << "nobody is to do anything";
}

TEST_F(ControlWireTest, ANameThatLeadsNowhereIsSaidInWords) {
  AttachSettings nowhere = attach_settings();
  nowhere.address = "no.such.host.invalid";
  attach(nowhere);
  const auto lost = at_agent_->next<CoordinatorOutOfReach>();
  ASSERT_TRUE(lost);
  EXPECT_NE(lost->reason.find("DNS does not know the name"), std::string::npos) << lost->reason;
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
  client_.reset();
  ASSERT_TRUE(at_server_->next<ConnectionBroke>());
  EXPECT_EQ(refusal_of(attach_settings()), "let in");
}

bool may_open(std::size_t files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= files;
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// What a program that is no agent does with the port.
TEST_F(ControlWireTest, AThousandConnectionsOfGarbageAndSilenceDoNotKeepAgentsOut) {
  constexpr std::size_t kConnections = 1000;
  if (!may_open(2 * kConnections + 100)) GTEST_SKIP() << "the limit of open files is too low";
  listen();
  const std::size_t files = open_files(), bytes = resident_bytes();
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < kConnections; ++i) {
    silent.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(silent.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address),
              0);
    const std::string garbage(1000, static_cast<char>(i));
    if (i % 2 == 0) (void)::send(silent.back().get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
  }
  attach(attach_settings());
  say_hello();
  EXPECT_TRUE(at_server_->next<AgentSaid>());
  EXPECT_LT(resident_bytes(), bytes + (std::size_t{64} << 20));
  // The coordinator's ends go, while those here stay; the agent has a few.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (open_files() > files + kConnections + 20 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LE(open_files(), files + kConnections + 20);
}

TEST_F(ControlWireTest, AMessageThatIsTooLargeEndsTheConnectionOfItsSender) {
  listen();
  attach(attach_settings());
  say_hello();
  ASSERT_TRUE(at_server_->next<AgentSaid>());
  client_->send(SendToCoordinator{RankFailed{0, 0, std::string(5 << 20, 'x'), false}});
  EXPECT_TRUE(at_server_->next<ConnectionBroke>());
  say_hello();
  EXPECT_TRUE(at_server_->next<AgentSaid>());
}

TEST_F(ControlWireTest, OutputIsFetchedFromAnAgent) {
  listen();
  attach(attach_settings());
  say_hello();
  ASSERT_TRUE(at_server_->next<AgentSaid>());
  server_->fetch_output("a", "1", 5);
  const auto wanted = at_agent_->next<OutputWanted>();
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->number, 5U);
  client_->send(RecentOutput::Piece{.lines = {{.rank = 3, .text = "line"}}, .next = 6});
  const auto printed = at_server_->next<HostPrinted>();
  ASSERT_TRUE(printed);
  EXPECT_EQ(printed->host, "a");
  EXPECT_EQ(printed->agent, "1");
  EXPECT_EQ(printed->piece.lines.at(0).text, "line");
  server_->fetch_output("b", "1", 5);
  EXPECT_FALSE(at_agent_->next<OutputWanted>(milliseconds(200)));
}

/// A run that is asked from elsewhere.
class ViewWireTest : public ControlWireTest {
 protected:
  std::unique_ptr<ViewClient> client(const RunSecret& with) {
    return std::make_unique<ViewClient>(ViewSettings{"localhost", port_, with});
  }
  /// Asks, and answers as the run does; returns the answer.
  std::optional<std::string> asked(ViewClient& client, const ViewQuestion& question,
                                   const std::string& answer) {
    const auto call = client.ask(question);
    const auto heard = at_server_->next<ViewAsked>();
    if (!heard || !(heard->question == question)) return "another question";
    server_->answer(heard->number, answer);
    return call->wait(milliseconds(10'000)) ? call->answer() : "no answer";
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
  server_->close(milliseconds(2000));
  ASSERT_TRUE(end->wait(milliseconds(5000)));
  EXPECT_EQ(end->answer().value_or("").size(), 1'000'000U);
  ASSERT_TRUE(other->wait(milliseconds(5000)));
  EXPECT_EQ(other->answer(), std::nullopt) << "it has ended";
}

TEST_F(ViewWireTest, OtherSecretsAndNobodyAreErrors) {
  const auto failure = [&](const RunSecret& with) -> std::string {
    const auto client = this->client(with);
    const auto call = client->ask(AskStatus{});
    if (!call->wait(milliseconds(10'000))) return "no answer";
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
  const std::string advice = ": give --run-secret the file that it was given";
  EXPECT_EQ(failure(other), "78 the run " + place + " has another token" + advice);
  EXPECT_EQ(failure(make_secret()), "78 the run " + place + " has another certificate" + advice);
  EXPECT_FALSE(at_server_->next<ViewAsked>(milliseconds(50))) << "the run hears none of them";
}

TEST_F(ViewWireTest, AnAnswerThatIsTooLargeIsSaidToBe) {
  listen();
  const auto client = this->client(secret());
  const auto call = client->ask(AskStatus{});
  const auto heard = at_server_->next<ViewAsked>();
  ASSERT_TRUE(heard);
  server_->answer(heard->number, std::string(kMostAnswerBytes + (1 << 20), 'x'));
  ASSERT_TRUE(call->wait(milliseconds(20'000)));
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
  ASSERT_TRUE(one_more->wait(milliseconds(5000)));
  EXPECT_THROW((void)one_more->answer(), HostError);
  calls.clear();
  ASSERT_TRUE(at_server_->next<ViewLeft>());
}

// Fault 32.
TEST_F(ControlWireTest, APortInUseIsRefused) {
  listen();
  try {
    CoordinatorServer second(listen_settings());
    FAIL();
  } catch (const HostError& error) {
    EXPECT_NE(std::string(error.what()).find(") has the port: name another one"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace strata::launcher
