// Notes that a session will replace a file of an earlier one.
#pragma once

#include <string>

#include "train/run/run_listeners.h"

namespace strata::train {

/// Notes that the file of `flag` ("--trace") exists and that this run will replace it when it ends.
/// Says nothing about an empty file, or a path that is no file (/dev/null, a pipe).
void note_replaced(const std::string& flag, const std::string& path, const RunListeners& listeners);

}  // namespace strata::train
