// Reads a DeepSpeed JSON along key_table.h: settings for keys that are obeyed, notes for keys that
// do nothing here, every problem with its JSON path and line. It decides nothing; resolve.h does.
#pragma once

#include <string>
#include <string_view>

#include "train/config/settings.h"

namespace strata::train {

struct DeepSpeedSettings {
  std::string file;   ///< name in messages; "": there is no file
  Settings settings;  ///< keyed by option name
  /// Values that are no option by themselves, keyed by JSON path; of a section that is off: that it
  /// has keys that would count if it were on.
  Settings facts;
  Findings findings;
};

/// Parses the text; `file` is its name in messages. Comments and trailing commas are allowed.
/// Unknown keys are warnings, or problems if `strict`; below "strata" they are always problems.
/// Throws ConfigError if the text is not JSON or repeats a key.
DeepSpeedSettings parse_deepspeed_json(std::string_view text, const std::string& file, bool strict);

/// Reads `source`: a file, or the JSON itself in base64, also URL-safe, as launchers pass it.
DeepSpeedSettings read_deepspeed_json(const std::string& source, bool strict);

/// Makes settings of facts on precision, optimizer, scheduler, offload; called by the above.
void interpret_facts(DeepSpeedSettings& read);

}  // namespace strata::train
