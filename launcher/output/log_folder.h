// Keeps what ranks print, and why attempts failed, in files: `mlaunch --log-dir DIR`.
//
//   DIR/RUN/attempt_0/rank_3/stdout.log, stderr.log     as the rank wrote it
//   DIR/RUN/attempt_0/report.txt, report.json           if the attempt did not end well
//   DIR/RUN/gave_up.txt                                 why the run ended with 93
//   DIR/RUN/mlaunch.log                                 what mlaunch did and said, and when
//   DIR/RUN/mlaunch.again_1.log                         the same of one that went on with the run
//   DIR/RUN/mlaunch.1.log, mlaunch.1.again_1.log        the same of an agent of host 1
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/new_folders.h"
#include "core/unique_fd.h"
#include "launcher/control/placement.h"
#include "launcher/output/screen.h"

namespace strata::launcher {

class LogFolder {
 public:
  /// Makes DIR and DIR/RUN (mode 0700). Throws HostError if that cannot be done, Error (io) if
  /// nothing can be written there, as on a full disk; no folder is left then that was not there.
  /// `host`: number of an agent's host, whose DIR/RUN others may have made (its own file is
  /// mlaunch.HOST.log); nullopt: the run's first or only one.
  LogFolder(const std::string& directory, const std::string& run_id, std::optional<int> host = {});

  /// Makes DIR, for a host that joins a run and learns only there how the run is called. Throws
  /// HostError if no folder can be made in it.
  static void make_parent(const std::string& directory);

  [[nodiscard]] const std::string& path() const { return path_; }  ///< absolute

  /// Moves what is there to DIR/RUN of the run that goes on here, beside what an earlier mlaunch
  /// has kept there; from a folder that was there before only its own file. Call it between
  /// attempts. If that fails, complains and stays where it is; returns false then, and where logs
  /// are lost.
  bool move_to(const std::string& run_id);

  /// Appends a line to mlaunch.log: the time, and the first line of `text`.
  void note(std::string_view text);

  /// Makes folders and files (mode 0600) of the ranks of host `node`.
  void begin_attempt(const Placement& placement, int node);
  /// Appends what a rank of this host wrote. The first failure ends all writing.
  void write(int local_rank, OutputKind kind, std::string_view bytes);
  /// Ends the files of the ranks: some file systems tell only then that bytes were lost.
  void end_attempt();
  /// Writes a file of an attempt, of which this host may have no ranks, and returns its path; "":
  /// logs are lost. Under its name it is whole or not there.
  std::string keep_of_attempt(int attempt, const std::string& name, std::string_view text);
  /// Likewise, of the run.
  void keep_of_run(const std::string& name, std::string_view text);

  /// The first failure, once: logs are lost, and the run goes on.
  [[nodiscard]] std::optional<std::string> take_complaint();

 private:
  /// Makes the folder of the run, unless others of its hosts have, and the file of notes.
  void begin(const std::string& directory, std::optional<int> host, NewFolders& made);
  [[nodiscard]] std::string folder_of(int attempt) const;
  [[nodiscard]] UniqueFd create(const std::string& file);
  void make_folder(const std::string& folder);
  void keep(const std::string& file, std::string_view text);
  void close(UniqueFd& file, const std::string& name);
  bool append(const UniqueFd& file, const std::string& name, std::string_view bytes);
  void give_up(const std::string& what, const std::string& name, int error);

  std::string path_, attempt_path_, notes_path_;
  UniqueFd notes_;
  std::vector<std::array<UniqueFd, 2>> files_;  ///< per rank of this host: output, error
  bool is_own_ = false;  ///< path_ was made here; else logs of other runs may be there
  bool lost_ = false;
  std::string failure_;  ///< why logs are lost
  std::optional<std::string> complaint_;
};

}  // namespace strata::launcher
