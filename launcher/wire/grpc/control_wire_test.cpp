// Tests that words of a coordinator and its agents arrive, whatever others do with the port.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/error.h"
#include "core/unique_fd.h"
#include "launcher/wire/grpc/testing/control_wire_rig.h"

namespace strata::launcher {
namespace {

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
  server_->close(kHangs);
  const auto said = at_agent_->next<CoordinatorSaid>();
  ASSERT_TRUE(said);
  EXPECT_EQ(std::get<Dismiss>(said->message), (Dismiss{75, ""}));
  listen();
  say_hello();
  ASSERT_TRUE(at_server_->next<AgentSaid>());
  client_->send(SendToCoordinator{SignalCame{15}});
  client_->close(kHangs);
  const auto came = at_server_->next<AgentSaid>();
  ASSERT_TRUE(came);
  EXPECT_EQ(std::get<SignalCame>(came->message).number, 15);
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

TEST_F(ControlWireTest, ANameThatLeadsNowhereIsSaidInWords) {
  AttachSettings nowhere = attach_settings();
  nowhere.address = "no.such.host.invalid";
  attach(nowhere);
  const auto lost = at_agent_->next<CoordinatorOutOfReach>();
  ASSERT_TRUE(lost);
  EXPECT_NE(lost->reason.find("DNS does not know the name"), std::string::npos) << lost->reason;
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
  const auto limit = std::chrono::steady_clock::now() + kHangs;
  while (open_files() > files + kConnections + 20 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LE(open_files(), files + kConnections + 20);
}

}  // namespace
}  // namespace strata::launcher
