// The runs of this user on this host, as another process of the user finds and asks them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/unique_fd.h"
#include "launcher/views/control_folder.h"

namespace strata::launcher {

/// Thrown where a run was asked and has not answered in time. It obeys once its mlaunch goes on.
class NoAnswer : public HostError {
 public:
  NoAnswer(const std::string& run_id, pid_t process, const std::string& why)
      : HostError("run " + run_id + " does not answer: " + why), process_(process), why_(why) {}
  [[nodiscard]] pid_t process() const { return process_; }  ///< of its mlaunch; 0: not known
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  pid_t process_;
  std::string why_;
};

class RunsOfUser {
 public:
  /// Time in which a run has to answer.
  static constexpr std::chrono::seconds kPatience{5};

  /// Looks into those of the folders that exist (ControlFolder::places). Throws HostError if there
  /// is no run in any and one is refused.
  explicit RunsOfUser(const std::vector<std::string>& places);

  /// Lists the ids of runs that live. Sockets of dead ones are removed.
  [[nodiscard]] std::vector<std::string> living() const;
  /// Returns the id of the run that a user means by an id or the beginning of one. Throws
  /// InvalidArgument that says what there is.
  [[nodiscard]] std::string choose(const std::string& typed) const;

  /// Returns what is told of the run that a user means, if it has ended (ended_json) or was killed
  /// (record_json) and is one of the last; nullopt: none or several, or one that lives is meant.
  [[nodiscard]] std::optional<JsonValue> find_ended(const std::string& typed) const;

  /// Returns what is known (record_json) of runs that were killed lately, the newest first.
  [[nodiscard]] std::vector<JsonValue> killed_lately() const;

  /// Returns the run's answer to a request (ControlSocket); nullopt: it has ended. Throws NoAnswer
  /// if it does not answer in time; without a limit it waits as long as the run does.
  [[nodiscard]] std::optional<JsonValue> ask(
      const std::string& run_id, const std::string& request,
      std::optional<std::chrono::milliseconds> limit = kPatience) const;
  /// Connects to the run and sends a request; nullopt: it has ended.
  [[nodiscard]] std::optional<UniqueFd> send(const std::string& run_id,
                                             const std::string& request) const;

 private:
  [[nodiscard]] std::string killed_text() const;

  std::vector<ControlFolder> folders_;
};

/// Reads until the other side ends the connection; nullopt: that took longer than `limit`.
std::optional<std::string> read_answer(const UniqueFd& connection, std::chrono::milliseconds limit);

}  // namespace strata::launcher
