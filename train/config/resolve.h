// Merges flags, file, "auto" and defaults into one TrainOptions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/config/command_line.h"
#include "train/config/deepspeed_json.h"
#include "train/config/options.h"
#include "train/config/settings.h"
#include "train/config/stored_model.h"
#include "train/models/model_config.h"

namespace strata::train {

/// One line of --print-config: a resolved option.
struct ResolvedField {
  std::string name;
  std::string value;
  Origin origin = Origin::default_value;
  std::string where;       ///< file and path, or flag; "" for defaults
  bool left_open = false;  ///< the file says "auto", and a run needs the value from a flag
};

struct ResolvedConfig {
  TrainOptions options;
  std::vector<ResolvedField> fields;  ///< every option, in the order of option_fields
  std::vector<std::string> notes;     ///< one line each, to be printed once at start
  std::vector<std::string> warnings;

  [[nodiscard]] Origin origin_of(std::string_view name) const;
};

/// Flags win over the file, the file over what "auto" means, "auto" over defaults. Defaults differ
/// for a model that goes on from stored weights. `world`: number of ranks. Reads the DeepSpeed JSON
/// that the command line names. Throws ConfigError with all problems of the file, the flags and
/// their combination, one line each ("file:line: path: found, expected").
ResolvedConfig resolve(const ParsedCommandLine& command_line, int world, const ModelConfig& model,
                       const StoredModel& stored = {});

/// Resolves with a file that was read already (default-constructed: none).
ResolvedConfig resolve(const ParsedCommandLine& command_line, const DeepSpeedSettings& file,
                       int world, const ModelConfig& model, const StoredModel& stored = {});

/// Text of --print-config: a table of option, value, origin.
std::string describe(const ResolvedConfig& resolved);

}  // namespace strata::train
