// Programs that start the agents of other hosts (ssh, srun, mpirun), one for each, for as long as
// their hosts take part: what an agent prints comes through its starter.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/group/rank_process.h"
#include "launcher/output/screen.h"
#include "launcher/start/agent_command.h"

namespace strata::launcher {

class Starters {
 public:
  /// Borrows the screen.
  explicit Starters(Screen& screen) : screen_(screen) {}
  ~Starters();
  Starters(const Starters&) = delete;
  Starters& operator=(const Starters&) = delete;

  /// Starts a program for an agent, and writes `input` to its standard input. Throws
  /// InvalidArgument if $PATH has no such program, HostError if it cannot be started.
  void start(const AgentStart& agent, const std::string& input);

  /// Adds what to poll for: outputs that the screen has room for.
  void add_polls(std::vector<pollfd>& entries);
  /// Passes on what was printed, in whole lines.
  void work();

  /// A starter that has ended.
  struct Ended {
    std::string host;
    std::string last_words;  ///< last line of its standard error that has words; may be empty
  };
  /// Returns the starters that have ended since the last call.
  std::vector<Ended> take_ended();
  [[nodiscard]] bool any_left() const;
  /// Ends those that are left.
  void kill();

 private:
  struct Starter {
    std::string host;
    RankProcess process;
    UniqueFd number = {};         ///< pidfd: somebody else may wait for the process
    std::string partial[2] = {};  ///< of standard output and standard error: since the last newline
    std::string last_line = {};   ///< of standard error
    bool told = false;            ///< that it has ended
  };

  void read(Starter& starter, OutputKind kind);
  void print(Starter& starter, OutputKind kind, std::string_view bytes);
  [[nodiscard]] static UniqueFd& pipe(Starter& starter, OutputKind kind);

  Screen& screen_;
  std::vector<Starter> starters_;
};

}  // namespace strata::launcher
