// The end of a run, as another process waits for it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/json.h"
#include "core/unique_fd.h"
#include "launcher/views/runs_of_user.h"

namespace strata::launcher {

/// Describes a run that has ended (ended_json): its exit code, and in further lines what it saved
/// and where its logs are, if there are any.
std::string describe_end(const JsonValue& end);

class RunEnd {
 public:
  /// Waits from now on. Borrows runs.
  RunEnd(const RunsOfUser& runs, std::string run_id);

  /// Returns true once the run has ended, false if it has not when `limit` has passed.
  bool wait(std::chrono::milliseconds limit);
  /// mlaunch's exit code, after wait() was true; nullopt: unknown, as when mlaunch was killed.
  [[nodiscard]] std::optional<int> exit_code() const;
  /// "run 0123... has ended with code 75", and what was kept of it in further lines.
  [[nodiscard]] std::string describe() const;

 private:
  const RunsOfUser& runs_;
  const std::string run_id_;
  std::optional<UniqueFd> connection_;  ///< nullopt: the run has ended
  std::optional<JsonValue> told_;       ///< by the run at its end
};

}  // namespace strata::launcher
