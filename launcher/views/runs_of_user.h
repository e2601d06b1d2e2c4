// The runs of this user on this host, as another process of the user finds and asks them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/unique_fd.h"
#include "launcher/views/control_folder.h"

namespace strata::launcher {

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

  /// Returns what is told (ended_json) of the run that a user means, if it has ended and is one of
  /// the last; nullopt: none or several, or one that lives is meant.
  [[nodiscard]] std::optional<JsonValue> find_ended(const std::string& typed) const;

  /// Returns the run's answer to a request (ControlSocket); nullopt: it has ended. Throws HostError
  /// if it does not answer in time; without a limit it waits as long as the run does.
  [[nodiscard]] std::optional<JsonValue> ask(
      const std::string& run_id, const std::string& request,
      std::optional<std::chrono::milliseconds> limit = kPatience) const;
  /// Connects to the run and sends a request; nullopt: it has ended.
  [[nodiscard]] std::optional<UniqueFd> send(const std::string& run_id,
                                             const std::string& request) const;

 private:
  std::vector<ControlFolder> folders_;
};

/// Reads until the other side ends the connection; nullopt: that took longer than `limit`.
std::optional<std::string> read_answer(const UniqueFd& connection, std::chrono::milliseconds limit);

}  // namespace strata::launcher
