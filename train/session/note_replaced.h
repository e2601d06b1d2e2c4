// What a session writes in place of an earlier one's.
#pragma once

#include <string>

#include "train/run/run_listeners.h"

namespace strata::train {

/// Notes that the file of `flag` ("--trace") is there, so that this run replaces it when it ends.
/// What is no file (/dev/null, a pipe) or empty is not worth a note.
void note_replaced(const std::string& flag, const std::string& path, const RunListeners& listeners);

}  // namespace strata::train
