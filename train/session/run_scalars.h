// The numbers of a run under the tags that transformers' Trainer and DeepSpeed give them
// (docs/formats/logs.md).
#pragma once

#include <string>
#include <vector>

#include "train/run/log_sinks.h"
#include "train/run/run_event.h"

namespace strata::train {

/// A number under its tag.
struct Scalar {
  std::string tag;
  double value = 0;
};

struct StepScalars {
  std::int64_t step = 0;
  std::vector<Scalar> scalars;
};

/// Returns what is written of an event under names of this kind: nothing of most events. `scaled`:
/// whether the loss is, as in fp16.
StepScalars scalars_of(const RunEvent& event, LogNames names, bool scaled);

}  // namespace strata::train
