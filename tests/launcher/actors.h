// Runs of rank_actor, and looks at what mlaunch said, for all tests of mlaunch.
#pragma once

#include <string>
#include <vector>

#include "tests/launcher/mlaunch_process.h"

namespace strata::testing {

[[nodiscard]] bool contains(const std::string& text, const std::string& part);

/// Makes the arguments of `mlaunch OPTIONS -np RANKS rank_actor ARGUMENTS`.
[[nodiscard]] std::vector<std::string> actors(int ranks, const std::vector<std::string>& arguments,
                                              std::vector<std::string> options = {});

/// Returns mlaunch's final report: from the line that says which rank failed to the end.
[[nodiscard]] std::string report_of(const MlaunchProcess& mlaunch);

/// Returns a report without the line that says where it is kept.
[[nodiscard]] std::string without_place(const std::string& report);

/// Fails for each process of the run that lives.
void expect_nothing_left(const MlaunchProcess& mlaunch);

}  // namespace strata::testing
