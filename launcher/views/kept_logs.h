// What ranks of a run that has ended have printed, from the files that --log-dir keeps.
#pragma once

#include <string>

#include "core/standard_output.h"
#include "launcher/views/view_options.h"

namespace strata::launcher {

/// Prints what is in the log folder of a run, DIR/RUN of launcher/output/log_folder.h: attempt by
/// attempt, rank by rank, standard output before standard error, as far as `options` want it.
/// Returns false if it has fewer ranks than the `world` of the run, whose others were on hosts with
/// folders of their own. Throws InvalidArgument if it is gone or has nothing of `options.rank`.
bool print_kept_logs(const std::string& folder, int world, const ViewOptions& options,
                     StandardOutput& output);

}  // namespace strata::launcher
