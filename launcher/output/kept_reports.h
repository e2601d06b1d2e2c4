// Keeps what is told of attempts that failed in a place of the user's, where no --log-dir names
// one:
//
//   PLACE/RUN/attempt_0/report.txt, report.json
//   PLACE/RUN/gave_up.txt, output.txt             if the run ended with 93
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace strata::launcher {

class KeptReports {
 public:
  /// The variables that say where it is; null: not set.
  struct Environment {
    const char* chosen = nullptr;  ///< STRATA_RUNS_DIR
    const char* state = nullptr;   ///< XDG_STATE_HOME
    const char* home = nullptr;    ///< HOME
  };
  /// The chosen folder, else XDG_STATE_HOME/strata/runs, else HOME/.local/state/strata/runs; "":
  /// there is none. Paths that are not absolute count as not set, but for the chosen one.
  static std::string place(const Environment& environment);
  /// The same for this process.
  static std::string place();

  /// The reports of so many runs are kept, the newest ones, and those of runs that go on.
  static constexpr std::size_t kMostRuns = 32;
  /// Lists the ids of runs that go on; throws HostError if nobody knows.
  using LivingRuns = std::function<std::vector<std::string>()>;

  /// Makes nothing yet. `place`: "" keeps nothing. Without `living` no run goes on.
  explicit KeptReports(std::string place, LivingRuns living = {})
      : place_(std::move(place)), living_(std::move(living)) {}

  /// Returns the folder of what is kept of the run; "": nothing is.
  [[nodiscard]] std::string folder_of(const std::string& run_id) const;

  /// Returns the path that a file of the run has once it is kept; "": nothing is.
  [[nodiscard]] std::string path_of(const std::string& run_id, const std::string& name) const;

  /// Writes a file of the run, as "attempt_0/report.txt"; it is whole or not there. Makes folders
  /// (mode 0700) as needed, and removes those of the oldest runs that have ended. Throws HostError
  /// or IoError. Processes may call it at the same time; two that remove runs may then remove one
  /// more than needed.
  void keep(const std::string& run_id, const std::string& name, const std::string& text) const;

 private:
  void make_room() const;

  const std::string place_;
  const LivingRuns living_;
};

}  // namespace strata::launcher
