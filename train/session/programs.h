// The programs `train`, `plan` and `generate` as functions, for a program with model families of
// its own.
#pragma once

#include <span>

#include "train/models/model_family.h"

namespace strata::train {

/// Runs one rank of a training run (train --help), from its command line to its exit status. `own`:
/// families that config.json may name besides those of this repository. Errors go to stderr and the
/// status page. The process ignores SIGPIPE from here on.
int train_program(int argc, char** argv, std::span<const ModelFamily> own = {});

/// Plans runs for machines that need not be here (plan --help).
int plan_program(int argc, char** argv, std::span<const ModelFamily> own = {});

/// Prints a sample of text from a model directory (generate --help).
int generate_program(int argc, char** argv, std::span<const ModelFamily> own = {});

}  // namespace strata::train
