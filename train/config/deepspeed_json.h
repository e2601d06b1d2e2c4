// Reads a DeepSpeed JSON along key_table.h: every problem with its JSON path and line, notes for
// keys that do nothing here, settings for those that are obeyed. Decides nothing: resolve.h does.
#pragma once

#include <string>
#include <string_view>

#include "train/config/settings.h"

namespace strata::train {

struct DeepSpeedSettings {
  std::string file;   ///< as in messages, "": there is none
  Settings settings;  ///< by option name
  Settings facts;     ///< by JSON path: what is no option by itself
  Findings findings;
};

/// `file` is the name in messages. Comments and trailing commas are allowed. Keys that nobody knows
/// are warnings, or problems when `strict`; below "strata" they are always problems. Throws
/// ConfigError when the text is not JSON or repeats a key.
DeepSpeedSettings parse_deepspeed_json(std::string_view text, const std::string& file, bool strict);

/// `source`: a file, or the JSON in base64 (also URL-safe), as launchers of frameworks hand it
/// over.
DeepSpeedSettings read_deepspeed_json(const std::string& source, bool strict);

/// Precision, optimizer, scheduler and offload from the facts; called by the two above.
void interpret_facts(DeepSpeedSettings& read);

}  // namespace strata::train
