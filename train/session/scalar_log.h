// A folder that scalars of a run are written to.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "train/session/appended_file.h"
#include "train/session/run_scalars.h"

namespace strata::train {

/// A log that begins empty or goes on from a step: it then shows no step twice.
class ScalarLog {
 public:
  ScalarLog() = default;
  virtual ~ScalarLog() = default;
  ScalarLog(const ScalarLog&) = delete;
  ScalarLog& operator=(const ScalarLog&) = delete;

  /// `x` grows from call to call, but for late evaluations and checkpoints. Throws IoError where a
  /// file cannot be made; what cannot be written to one goes to OnFailure, and false comes back.
  virtual bool write(std::int64_t x, std::span<const Scalar> scalars) = 0;
};

/// The point from which a log goes on: `done` is the x of the last step that earlier processes did,
/// 0 of a new run.
struct LogBeginning {
  std::string folder;
  std::int64_t done = 0;
  std::string said_by;  ///< the flag or key that chose the folder
};

/// Begins an event file of TensorBoard after those that the folder has. Throws IoError.
std::unique_ptr<ScalarLog> open_event_log(const LogBeginning& beginning,
                                          AppendedFile::OnFailure on_failure);

/// Writes a CSV file per tag, made when the tag first comes. A new run puts those of an earlier run
/// aside, as "FILE.csv.old". Throws InvalidArgument if there is another file than a CSV of steps by
/// the name of one of `tags`, those that are known to come.
std::unique_ptr<ScalarLog> open_csv_log(LogBeginning beginning, std::span<const std::string> tags,
                                        AppendedFile::OnFailure on_failure);

}  // namespace strata::train
