// The folder with the sockets on which the runs of one user on this host listen, what is told of
// the last ones that have ended, and what is known of those that were killed. It is the user's own
// and closed to others; it is held open, so that what was checked is what is used.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/unique_fd.h"

namespace strata::launcher {

class ControlFolder {
 public:
  /// The variables that say where it is; null: not set.
  struct Environment {
    const char* chosen = nullptr;             ///< STRATA_RUNS_DIR
    const char* runtime_directory = nullptr;  ///< XDG_RUNTIME_DIR
  };
  /// Where folders of `user` may be: the chosen one alone, else $XDG_RUNTIME_DIR/strata if that
  /// variable names a folder of the user, and /tmp/strata-UID. New runs take the first.
  static std::vector<std::string> places(const Environment& environment, uid_t user);
  /// The same for this process.
  static std::vector<std::string> places();

  /// Opens the folder, and creates it if nothing is there. Throws HostError if it is a link,
  /// belongs to another user or is open to others.
  static ControlFolder make(const std::string& path);
  /// Opens the folder if it exists; otherwise as make().
  static std::optional<ControlFolder> find(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Returns a socket, non-blocking, that listens under the run's id. Removes those of dead runs.
  /// Throws HostError.
  [[nodiscard]] UniqueFd listen(const std::string& run_id) const;
  /// True if the run's socket has its name here.
  [[nodiscard]] bool has(const std::string& run_id) const;
  /// Removes the run's socket from the folder.
  void remove(const std::string& run_id) const;

  /// Keeps a line of a run that ends; of the last kMostEnds runs. Where that fails nothing is kept.
  void keep_end(const std::string& run_id, const std::string& line) const;
  static constexpr std::size_t kMostEnds = 32;
  /// Lists the ids of runs of which such a line is kept.
  [[nodiscard]] std::vector<std::string> ended_ids() const { return ids_of(kEnded); }
  /// Returns that line; "": none.
  [[nodiscard]] std::string end_of(const std::string& run_id) const { return read(run_id, kEnded); }

  /// Keeps a line of a run that goes on in place of the one before, for the case that it is killed;
  /// of runs that were, those of the last kMostEnds stay. Where that fails nothing is kept.
  void keep_record(const std::string& run_id, const std::string& line) const;
  void remove_record(const std::string& run_id) const;
  /// Lists the ids of runs of which such a line is kept: they go on, or were killed.
  [[nodiscard]] std::vector<std::string> recorded_ids() const { return ids_of(kRecord); }
  /// Returns that line; "": none.
  [[nodiscard]] std::string record_of(const std::string& run_id) const {
    return read(run_id, kRecord);
  }

  /// Lists the ids of runs whose sockets are here, also of runs that have died.
  [[nodiscard]] std::vector<std::string> run_ids() const { return ids_of(kSocket); }
  /// Connects to a run; nullopt: nobody listens there. The socket of a dead run is removed, not one
  /// of which the record says that its mlaunch goes on, or is on another host that shares the
  /// folder. Throws HostError if the run does not answer within some seconds.
  [[nodiscard]] std::optional<UniqueFd> connect(const std::string& run_id) const;

 private:
  ControlFolder(UniqueFd folder, std::string path)
      : folder_(std::move(folder)), path_(std::move(path)) {}

  static constexpr std::string_view kSocket = ".sock", kEnded = ".ended", kRecord = ".record";

  void remove_dead() const;
  void remove_if_dead(const std::string& run_id) const;
  void make_room(std::string_view ending) const;
  [[nodiscard]] std::string read(const std::string& run_id, std::string_view ending) const;
  [[nodiscard]] std::vector<std::string> ids_of(std::string_view ending) const;

  UniqueFd folder_;
  std::string path_;
};

}  // namespace strata::launcher
