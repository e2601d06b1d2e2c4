// Refuses runs and plans that would write over what they read.
#pragma once

#include <vector>

#include "core/overwriting.h"
#include "train/run/training_run.h"

namespace strata::train {

/// Throws InvalidArgument naming both flags if a file that options, or `written` besides, say to
/// write is one that is read: text, settings, a Plan, a file of the model, its tokenizer or a
/// checkpoint; or one that another of them writes; or if it lies in a checkpoint's folder of
/// --output, which it names. One rank calls it: others may write already.
void keep_inputs(const RunRequest& request, const std::vector<NamedFile>& written = {});

}  // namespace strata::train
