// A file that a run appends records to: lines, or records of another format.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/unique_fd.h"

namespace strata::train {

/// Returns whether there is a file that put_earlier_file_aside would move. Throws as that does.
bool require_earlier_file(const std::string& path, std::string_view beginning,
                          const std::string& what, const std::string& said_by);

/// Moves the file of an earlier run from `path`, links followed, to "PATH.old", or "PATH.old.2" and
/// so on where there is one of that name; returns its name, "" where there was none. Throws
/// IoError, and InvalidArgument naming the flag or key `said_by` when the file is not of `what`,
/// which begins with `beginning`: the user may have named anything.
std::string put_earlier_file_aside(const std::string& path, std::string_view beginning,
                                   const std::string& what, const std::string& said_by);

/// Each record goes to the system at once and as a whole, so that a killed run keeps what it
/// reported.
class AppendedFile {
 public:
  /// Told of the first record that cannot be written; the others are tried nonetheless.
  using OnFailure = std::function<void(const IoError&)>;
  /// The step of a line; the least number of a line that is about none.
  using StepOf = std::int64_t (*)(std::string_view line);

  /// Creates the file or goes on with it; `what` it holds is for messages ("metrics"). Throws
  /// IoError.
  AppendedFile(std::string path, std::string what, OnFailure on_failure = {});

  /// Removes all lines. Nothing happens to a pipe or a device.
  void clear();
  /// Removes lines of later steps, and the torn last line of a killed run: lines that a run which
  /// goes on from `step` will write again. Lines about no step stay, wherever they are. Throws
  /// IoError; nothing is lost then.
  void cut_lines_after(std::int64_t step, StepOf step_of);
  /// False if the records could not be written; then nothing of them is in the file.
  bool append(std::string_view records);
  [[nodiscard]] bool is_empty() const;

 private:
  void open();
  [[nodiscard]] bool is_regular() const;
  /// Puts `rest` in the place of what follows byte `end`; a kill leaves the one or the other.
  void replace_after(std::int64_t end, std::string_view rest);
  std::string path_, what_;
  OnFailure on_failure_;  ///< empty: it has been told
  UniqueFd file_;
};

}  // namespace strata::train
