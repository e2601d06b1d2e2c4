// Checks before training that what a run will write can be written.
#pragma once

#include <string>

#include "core/new_folders.h"
#include "train/config/options.h"

namespace strata::train {

/// Looks on any rank at --output and makes nothing. Throws InvalidArgument if it is the folder of a
/// model, IoError if it is there and no writable directory.
void require_output(const TrainOptions& options);

/// Makes the directories of output, report and logs if they are missing. Throws IoError naming the
/// path if one of them, or the directory of the metrics, trace, profile or state file, is missing
/// or not writable. Only rank 0 calls it: none finds a folder that another rank will remove.
void require_writable(const TrainOptions& options, NewFolders& folders);

/// Throws IoError naming `flag` if `file` is a directory, or the directory that it is to lie in is
/// missing or not writable. Nothing is asked of "".
void require_writable_file(const std::string& file, const std::string& flag);

/// Tries on rank 0 to write the metrics, trace, profile, state and report files and to the folders
/// of reports and logs, which it makes again if they are gone, and leaves them as they are. Throws
/// IoError naming file and flag or key.
void try_writing(const TrainOptions& options, NewFolders& folders);

}  // namespace strata::train
