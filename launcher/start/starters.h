// Programs that start the agents of other hosts (ssh, srun, mpirun), one for each, for as long as
// their hosts take part: what an agent prints comes through its starter. One that has ended is
// started again: its host may be of use in the next attempt.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/group/rank_process.h"
#include "launcher/output/screen.h"
#include "launcher/start/agent_command.h"

namespace strata::launcher {

class Starters {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Whom ssh has not reached after this time is named: TCP may wait for a host for minutes.
  static constexpr std::chrono::seconds kArrival{10};
  /// One that has ended is started again after this time.
  static constexpr std::chrono::seconds kBetweenStarts{5};

  /// Borrows the screen.
  explicit Starters(Screen& screen) : screen_(screen) {}
  ~Starters();
  Starters(const Starters&) = delete;
  Starters& operator=(const Starters&) = delete;

  /// Starts a program for each agent, and writes `input` to its standard input. Call it once.
  /// Throws InvalidArgument if $PATH, where alone it looks, has no such program; HostError if it
  /// cannot be started.
  void start(TimePoint now, const std::vector<AgentStart>& agents, std::string input);

  /// Adds what to poll for: outputs that the screen has room for.
  void add_polls(std::vector<pollfd>& entries);
  /// Passes on what was printed, in whole lines, and says once of a host that ssh waits for it.
  void work(TimePoint now);

  /// A starter that has ended.
  struct Ended {
    std::string host;
    std::string why;  ///< last line of its standard error that has words, or what may be wrong
  };
  /// Returns the starters that have ended since the last call; they start again later.
  std::vector<Ended> take_ended(TimePoint now);
  /// Starts those again whose time has come, and returns their processes. Where that fails it says
  /// why, once, and tries again later.
  std::vector<pid_t> start_again(TimePoint now);
  /// Forgets those whose time has not come.
  void start_none_again() { again_.clear(); }
  /// Returns when the next one starts again, or has to be named; nullopt: neither.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  [[nodiscard]] bool any_left() const;
  /// Ends those that are left.
  void kill();

 private:
  struct Starter {
    AgentStart start;
    RankProcess process;
    TimePoint since;
    bool is_awaited = start.tells_arrival;  ///< its host has not been reached yet
    UniqueFd number = {};                   ///< pidfd: somebody else may wait for the process
    std::string partial[2] = {};  ///< of standard output and standard error: since the last newline
    std::string last_line = {};   ///< of standard error
    bool told = false;            ///< that it has ended
  };

  struct Again {
    TimePoint when;
    AgentStart agent;
    std::string why_not;  ///< it could not be started, as it was said last; empty: it was not tried
  };

  pid_t start(TimePoint now, const AgentStart& agent);
  void read(Starter& starter, OutputKind kind);
  void print(Starter& starter, OutputKind kind, std::string_view bytes);
  [[nodiscard]] bool is_missed(const Starter& starter) const;
  void name_missing(TimePoint now);
  [[nodiscard]] static UniqueFd& pipe(Starter& starter, OutputKind kind);

  Screen& screen_;
  std::string input_;
  std::vector<Starter> starters_;
  std::set<std::string> named_;  ///< hosts that were said not to have come
  std::deque<Again> again_;      ///< soonest first
};

}  // namespace strata::launcher
