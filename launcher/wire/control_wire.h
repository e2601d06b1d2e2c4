// The connections between the coordinator of a run and the agents of its other hosts. mlaunch opens
// the module that has them (libstrata_control.so: gRPC over TLS) when a run has several hosts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/control/agent.h"
#include "launcher/control/coordinator.h"
#include "launcher/control/view_question.h"
#include "launcher/output/recent_output.h"
#include "launcher/wire/agreed_facts.h"
#include "launcher/wire/run_secret.h"

namespace strata::launcher {

/// Version of the messages (grpc/control.proto); hosts with another one are refused.
inline constexpr int kControlProtocol = 1;
/// Longest answer to those who ask how the run is.
inline constexpr std::size_t kMostAnswerBytes = std::size_t{16} << 20;

// Events of a wire, besides those of the coordinator (AgentSaid, ConnectionBroke, HostRefused,
// StrangerRefused) and of the agent (CoordinatorSaid).

/// To an agent: its connection stands. It says Hello on it.
struct Connected {};
/// To an agent: the coordinator let it in. Told again where the coordinator, which was started
/// anew, learns from another host which run it goes on with.
struct Welcomed {
  std::string run_id;
  std::string master_address;  ///< MASTER_ADDR and MASTER_PORT of the ranks
  int master_port = 0;
};
/// To an agent: the coordinator does not let it in, and will not later unless `may_wait`.
struct NotWelcome {
  std::string reason;  ///< one line
  int exit_code = 78;  ///< that the agent ends with
  /// If the agent has had ranks, the coordinator of their run may still come: the wire tries again.
  bool may_wait = false;
};
/// To an agent: the coordinator cannot be reached; the wire tries again.
struct CoordinatorOutOfReach {
  std::string reason;  ///< one line
};
/// To the coordinator: a host has had ranks of this run, whose coordinator has died; the run that
/// waits here goes on with it.
struct RunTakenUp {
  std::string run_id;
};
/// To the coordinator: somebody who has the run's secret asks. It is to be answered under this
/// number.
struct ViewAsked {
  std::uint64_t number = 0;
  ViewQuestion question;
};
/// To the coordinator: who asked has gone.
struct ViewLeft {
  std::uint64_t number = 0;
};
/// To the coordinator: what ranks of a host have printed, as it asked.
struct HostPrinted {
  std::string host;
  std::string agent;
  RecentOutput::Piece piece;
};
/// To an agent: the coordinator wants to know what its ranks have printed, from this line on.
struct OutputWanted {
  std::uint64_t number = 0;
};
using WireEvent = std::variant<AgentSaid, ConnectionBroke, HostRefused, StrangerRefused, RunTakenUp,
                               Connected, Welcomed, NotWelcome, CoordinatorOutOfReach,
                               CoordinatorSaid, ViewAsked, ViewLeft, HostPrinted, OutputWanted>;

/// One end of the connections. Threads of the module receive and send; one thread calls all
/// functions, none of which waits but `close`.
class ControlWire {
 public:
  virtual ~ControlWire() = default;

  /// Descriptor that is readable while take() has something.
  [[nodiscard]] virtual int poll_fd() const = 0;
  /// Returns what was received, in the order of each connection.
  [[nodiscard]] virtual std::vector<WireEvent> take() = 0;
  /// Sends to an agent, or to the coordinator. What is sent while there is no connection is lost:
  /// both machines say again what must be heard.
  virtual void send(const SendToAgent& message) = 0;
  virtual void send(const SendToCoordinator& message) = 0;
  /// Asks an agent for what its ranks have printed (OutputWanted).
  virtual void fetch_output(const std::string& host, const std::string& agent,
                            std::uint64_t number) = 0;
  /// Answers OutputWanted.
  virtual void send(const RecentOutput::Piece& output) = 0;
  /// Answers ViewAsked. In place of one over kMostAnswerBytes it is said that it is too long; one
  /// for who has gone is lost.
  virtual void answer(std::uint64_t number, const std::string& json) = 0;
  /// To be called before ranks start: the run keeps its id from now on, which is returned. Hosts
  /// that have had ranks of another run are refused then.
  virtual std::string settle_run() = 0;
  /// Tells hosts that come from now on that the run has ended with this code.
  virtual void end_run(int exit_code) = 0;
  /// Waits until all is sent, at most `limit`, and ends all connections.
  virtual void close(std::chrono::milliseconds limit) = 0;
};

/// The coordinator's end.
struct ListenSettings {
  std::string address;             ///< numeric IPv4 or IPv6 address to listen at
  int port = 0;                    ///< 0: any
  RunSecret secret;                ///< with certificate and key
  AgreedFacts facts;               ///< agents with other ones are refused
  std::vector<std::string> hosts;  ///< of the run; others are refused
  Welcomed welcome;
  /// Hosts start by themselves, so that those of a run whose coordinator has died come here.
  bool takes_up_runs = false;
};

/// An agent's end.
struct AttachSettings {
  std::string address;  ///< name or numeric address of the coordinator's host
  int port = 0;
  RunSecret secret;              ///< its token and certificate
  AgreedFacts facts;             ///< as this host was told
  std::string run_id;            ///< of which ranks have run here; empty: none yet
  std::string secret_file = {};  ///< that the secret is from, for messages; "-": standard input
};

/// Where a run is asked from elsewhere.
struct ViewSettings {
  std::string address;  ///< name or numeric address of the coordinator's host
  int port = 0;
  RunSecret secret;              ///< its token and certificate
  std::string secret_file = {};  ///< that it is from, for messages
};

/// A question that was put to a run. To destroy it is to give it up.
class ViewCall {
 public:
  virtual ~ViewCall() = default;
  /// Returns true once it is over, false if it is not when `limit` has passed.
  virtual bool wait(std::chrono::milliseconds limit) = 0;
  /// After wait() was true: the run's answer, or nullopt if the run has ended since it answered
  /// another question. Throws ConfigError if it has another secret, HostError if nobody answers
  /// there, or if what answers is no mlaunch.
  virtual std::optional<std::string> answer() = 0;
};

/// A connection to a run, for questions. It must outlive its calls; one thread calls.
class ViewWire {
 public:
  virtual ~ViewWire() = default;
  [[nodiscard]] virtual std::unique_ptr<ViewCall> ask(const ViewQuestion& question) = 0;
};

/// What the module has.
class ControlModule {
 public:
  virtual ~ControlModule() = default;
  /// Begins to listen. Throws HostError if the address cannot be bound; its message names who has
  /// the port, where that is known.
  [[nodiscard]] virtual std::unique_ptr<ControlWire> listen(const ListenSettings& settings) = 0;
  /// Begins to connect, and connects again after a connection broke.
  [[nodiscard]] virtual std::unique_ptr<ControlWire> attach(const AttachSettings& settings) = 0;
  /// Begins to connect. Throws HostError for a name that leads nowhere.
  [[nodiscard]] virtual std::unique_ptr<ViewWire> view(const ViewSettings& settings) = 0;
  /// Makes a token, a certificate of the run and its key.
  [[nodiscard]] virtual RunSecret make_secret() = 0;
};

/// Name and type of the module's only entry; the caller owns the result.
inline constexpr const char* kControlModuleFile = "libstrata_control.so";
inline constexpr const char* kControlModuleEntry = "strata_make_control_module";
using ControlModuleEntry = ControlModule* (*)();

/// Opens libstrata_control.so beside the program or in ../lib. Throws HostError that says what is
/// missing.
std::unique_ptr<ControlModule> open_control_module();

}  // namespace strata::launcher
