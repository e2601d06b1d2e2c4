// The end of a run, as another process waits for it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "core/json.h"
#include "core/unique_fd.h"
#include "launcher/views/runs_of_user.h"

namespace strata::launcher {

/// Describes a run that has ended (ended_json) or was killed (record_json): its exit code or when
/// it was seen last, and in further lines what it saved and where its logs are, if there are any.
std::string describe_end(const JsonValue& end);

class RunEnd {
 public:
  explicit RunEnd(std::string run_id) : run_id_(std::move(run_id)) {}
  RunEnd(const RunEnd&) = delete;
  RunEnd& operator=(const RunEnd&) = delete;
  virtual ~RunEnd() = default;

  /// Returns true once the run has ended, false if it has not when `limit` has passed.
  virtual bool wait(std::chrono::milliseconds limit) = 0;
  /// mlaunch's exit code, after wait() was true; nullopt: unknown, as when mlaunch was killed.
  [[nodiscard]] std::optional<int> exit_code() const;
  /// "run 0123... has ended with code 75", and what was kept of it in further lines.
  [[nodiscard]] std::string describe() const;

 protected:
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  /// Takes the run's answer to a request to wait.
  void tell(const std::string& answer);
  /// Takes what was kept of it.
  void take(JsonValue kept) { told_ = std::move(kept); }
  [[nodiscard]] bool is_told() const { return told_.has_value(); }

 private:
  const std::string run_id_;
  std::optional<JsonValue> told_;  ///< by the run at its end
};

/// The end of a run of this user on this host.
class EndOfLocalRun final : public RunEnd {
 public:
  /// Waits from now on. Borrows runs.
  EndOfLocalRun(const RunsOfUser& runs, const std::string& run_id);
  bool wait(std::chrono::milliseconds limit) override;

 private:
  const RunsOfUser& runs_;
  std::optional<UniqueFd> connection_;  ///< nullopt: the run does not listen
};

}  // namespace strata::launcher
