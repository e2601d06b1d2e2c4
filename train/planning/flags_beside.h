// Says what a run must be given besides a file that `plan` writes.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/resolve.h"

namespace strata::train {

/// settings: of --write-config, for train --config; plan: of --write-plan, for train --plan.
enum class WrittenFile : std::uint8_t { settings, plan };

/// Returns the flags with which a run of the file has every option of `config` that the file does
/// not say, as a shell takes them: "--model DIR --steps 6". What is about planning itself is left
/// out. "": none.
std::string flags_beside(WrittenFile file, const ResolvedConfig& config);

}  // namespace strata::train
