// What ranks of a run that has ended have printed, from the files that --log-dir keeps.
#pragma once

#include <string>

#include "launcher/views/view_options.h"

namespace strata::launcher {

/// Prints what is in the log folder of a run, DIR/RUN of launcher/output/log_folder.h: attempt by
/// attempt, rank by rank, standard output before standard error, as far as `options` want it.
/// Throws InvalidArgument if the folder is gone or has nothing of `options.rank`.
void print_kept_logs(const std::string& folder, const ViewOptions& options);

}  // namespace strata::launcher
