// The runs of this user on this host, as another process of the user finds and asks them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/unique_fd.h"
#include "launcher/views/control_folder.h"
#include "launcher/views/run_record.h"

namespace strata::launcher {

/// Thrown where a run does not answer, though it may go on: it was asked, and obeys once its
/// mlaunch goes on, or it could not be asked.
class NoAnswer : public HostError {
 public:
  NoAnswer(const std::string& run_id, pid_t process, const std::string& why)
      : HostError("run " + run_id + " does not answer: " + why),
        run_id_(run_id),
        process_(process),
        why_(why) {}
  explicit NoAnswer(const RunRecord& record)
      : NoAnswer(record.run_id, record.process, record.why_silent()) {}
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] pid_t process() const { return process_; }  ///< of its mlaunch; 0: not known
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string run_id_;
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

  /// Lists the ids of runs that listen. Sockets of dead ones are removed.
  [[nodiscard]] std::vector<std::string> living() const;
  /// Returns the id of the run that a user means by an id or the beginning of one. Throws
  /// InvalidArgument that says what there is, and NoAnswer if the run is none of the living().
  [[nodiscard]] std::string choose(const std::string& typed) const;

  /// Returns what is told of the run that a user means, if it has ended (ended_json) or was killed
  /// (record_json) and is one of the last; nullopt: none or several, or one that lives is meant.
  [[nodiscard]] std::optional<JsonValue> find_ended(const std::string& typed) const;

  /// Lists runs that were killed within a day, the newest first.
  [[nodiscard]] std::vector<RunRecord> killed_lately() const;
  /// Lists runs of this host that go on but do not listen, as where somebody removed their socket.
  [[nodiscard]] std::vector<RunRecord> silent() const;
  /// Lists runs of other hosts that share a folder and were seen within a day, the newest first.
  [[nodiscard]] std::vector<RunRecord> elsewhere_lately() const;
  /// Returns what is known of a run that does not listen here and may go on; nullopt: it has ended
  /// or was killed, or nothing is known of it.
  [[nodiscard]] std::optional<RunRecord> unheard(const std::string& run_id) const;

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
  [[nodiscard]] std::map<std::string, RunRecord> left_behind() const;
  [[nodiscard]] std::vector<RunRecord> left_behind_lately(
      const std::function<bool(const RunRecord&)>& is_wanted) const;

  std::vector<ControlFolder> folders_;
};

/// Reads until the other side ends the connection; nullopt: that took longer than `limit`.
std::optional<std::string> read_answer(const UniqueFd& connection, std::chrono::milliseconds limit);

}  // namespace strata::launcher
