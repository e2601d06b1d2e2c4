// The network of a simulated run: streams between agents and the coordinator, whose messages come
// late, twice, in another order or not at all, and which break without both ends knowing at once.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "launcher/control/messages.h"
#include "launcher/control/testing/draws.h"
#include "launcher/control/testing/scenario.h"
#include "launcher/control/testing/simulated_host.h"

namespace strata::launcher::simulation {

/// A process at an end of streams. Calls come while its host runs.
class AgentEnd {
 public:
  virtual ~AgentEnd() = default;
  /// `coordinator`: the number of the one that sent it.
  virtual void hear(int coordinator, const CoordinatorMessage& message) = 0;
  virtual void stream_broke(int stream) = 0;
};
class CoordinatorEnd {
 public:
  virtual ~CoordinatorEnd() = default;
  virtual void hear(const std::string& host, const std::string& agent,
                    const AgentMessage& message) = 0;
  virtual void stream_broke(const std::string& host, const std::string& agent) = 0;
};

class Network {
 public:
  enum Direction { to_coordinator, to_agent };

  /// Borrows all but the traits; `hosts` by their numbers.
  Network(EventQueue& queue, Draws& draws, NetworkTraits traits, std::deque<SimulatedHost>& hosts,
          SimulatedHost& coordinator_host);

  /// Coordinators of a run are numbered; streams lead to the one that was there when they were
  /// made.
  void serve(int number, CoordinatorEnd* coordinator) {
    number_ = number;
    coordinator_ = coordinator;
  }
  /// The coordinator's process is gone: no stream can be made any more, and those that are break.
  void stop_serving();

  /// True if the coordinator has heard the Hello on the stream.
  [[nodiscard]] bool is_heard(int stream) const {
    return streams_[static_cast<std::size_t>(stream)].is_heard;
  }
  [[nodiscard]] bool can_connect(int host) const;
  /// Returns the number of a new stream.
  int connect(int host, const std::string& agent, AgentEnd& end);
  void send(int stream, const AgentMessage& message);
  /// Sends on the newest stream of the agent that the coordinator knows; does nothing without one.
  void send(const std::string& host, const std::string& agent, const CoordinatorMessage& message);

  /// Both ends learn of it, each in its own time.
  void break_stream(int stream);
  void break_streams_of(int host);
  /// The agent's process is gone, and the coordinator learns of it within `notice`.
  void leave(int stream, Duration notice);
  /// Nothing passes for so long. A stream may survive that, as TCP sends again; or it breaks.
  void cut(int host, Direction direction, Duration lasts);

 private:
  struct Stream {
    int coordinator;
    int host;
    std::string agent;
    AgentEnd* end;
    bool is_broken = false;
    bool agent_knows = false;  ///< that it is broken
    bool coordinator_knows = false;
    bool is_heard = false;                 ///< the coordinator has heard its Hello
    std::vector<AgentMessage> early = {};  ///< requests that came before that
    std::array<Time, 2> last_arrival{};
  };

  void deliver(int stream, Direction direction, const Callback& callback);
  [[nodiscard]] Time arrival(Stream& stream, Direction direction);
  void arrive(int stream, const AgentMessage& message);
  void hear(Stream& stream, const AgentMessage& message);
  void tell_coordinator(int stream);
  [[nodiscard]] Stream& at(int stream) { return streams_[static_cast<std::size_t>(stream)]; }
  [[nodiscard]] int newest_heard(const std::string& host, const std::string& agent) const;
  [[nodiscard]] SimulatedHost& host_of(const Stream& stream) const;

  EventQueue& queue_;
  Draws& draws_;
  const NetworkTraits traits_;
  std::deque<SimulatedHost>& hosts_;
  SimulatedHost& coordinator_host_;
  int number_ = -1;                        ///< of the newest coordinator
  CoordinatorEnd* coordinator_ = nullptr;  ///< nullptr: its process is gone
  std::deque<Stream> streams_;
  std::vector<std::array<Time, 2>> cut_until_;
};

}  // namespace strata::launcher::simulation
