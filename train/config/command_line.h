// Parses the command line of `train`, before anything is merged with it.
#pragma once

#include <string>
#include <vector>

#include "train/config/settings.h"

namespace strata::train {

struct ParsedCommandLine {
  enum class Action { train, check_config, help, version };
  Action action = Action::train;
  std::string config;     ///< DeepSpeed JSON as a file or base64; "": none
  bool strict = false;    ///< unknown keys are problems, not warnings
  std::string hardware;   ///< --hardware, if nothing is trained; empty: not given
  int assumed_world = 0;  ///< --world-size, if nothing is trained; 0: not given
  bool chooses = false;   ///< settings that are not given are chosen without a target, too
  Settings settings;      ///< keyed by option name; `where` is the flag as typed
  std::vector<std::string> notes;
};

/// The program whose command line holds flags of `train`, for messages.
struct FlagsOf {
  std::string program = "train";
  std::vector<std::string> own = {};  ///< flags that it has besides those of `train`
};

/// Throws InvalidArgument (exit code 2) for unknown flags (naming the nearest), missing values and
/// flags that are not available. resolve() checks the values.
ParsedCommandLine parse_train_command_line(int argc, const char* const* argv,
                                           const FlagsOf& flags_of = {});

/// The text that --help prints.
std::string train_help();

/// The value of --model, or its default; needed to read the ModelConfig that resolve takes.
std::string requested_model(const ParsedCommandLine& command_line);

}  // namespace strata::train
