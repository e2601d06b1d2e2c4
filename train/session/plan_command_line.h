// Parses the command line of `plan`: its own flags, and those of `train`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace strata::train {

struct PlanCommandLine {
  bool help = false, version = false;
  std::vector<std::string> hardware;  ///< names or files; empty: this machine
  std::vector<std::string> targets;   ///< of memory; empty: what a file says, or all of it
  int world = 0;                      ///< ranks; 0: the devices of the hardware
  int hosts = 0;                      ///< hosts of the hardware; 0: as its file says
  std::vector<double> prices;         ///< per device and hour; one, or one per hardware
  bool explains = false;
  bool json = false;
  std::string config_to_write;     ///< file; empty: none
  std::vector<std::string> train;  ///< the words that are left, for `train`'s parser
};

/// The flags of `plan` that the parser of `train` may name as what was meant.
std::vector<std::string> plan_flags();

/// Throws InvalidArgument with all problems, one line each.
PlanCommandLine parse_plan_command_line(int argc, const char* const* argv);

/// The text that --help prints.
std::string plan_help();

}  // namespace strata::train
