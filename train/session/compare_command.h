// `plan compare`: what was foreseen in one memory report beside what a run measured in another.
#pragma once

#include <span>

#include "core/standard_output.h"

namespace strata::train {

/// Runs the command with the words after `compare`; returns its exit status. Throws
/// InvalidArgument for words that are wrong, and what read_report throws.
int compare_command(std::span<const char* const> words, StandardOutput& output);

}  // namespace strata::train
