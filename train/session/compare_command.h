// `plan compare`: what was foreseen in one memory report beside what a run measured in another, and
// the steps of several runs in one page.
#pragma once

#include <span>

#include "core/standard_output.h"

namespace strata::train {

/// Runs the command with the words after `compare`; returns its exit status. Throws
/// InvalidArgument for words that are wrong, what read_report, read_compared_run and page_with_runs
/// throw, and IoError.
int compare_command(std::span<const char* const> words, StandardOutput& output);

}  // namespace strata::train
