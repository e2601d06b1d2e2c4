// What a run says of itself before its first step: model, data, steps, division over ranks,
// devices, memory.
#pragma once

#include <optional>
#include <string>

#include "machine/figure.h"
#include "train/config/options.h"
#include "train/config/resolve.h"
#include "train/engine/build_programs.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// What of it the Programs do not know.
struct RunFacts {
  int ranks = 1;
  std::string transport;                        ///< between ranks
  std::string device;                           ///< that rank 0 computes on
  std::string place;                            ///< among NUMA nodes; empty: there is one
  std::string disk;                             ///< empty: nothing lives there
  double foreseen_seconds = 0;                  ///< of a step
  machine::Source rates{};                      ///< where the device's rates come from
  std::optional<std::int64_t> tokens;           ///< of the training data; none: no data are read
  std::optional<std::int64_t> held_out_tokens;  ///< none: nothing is evaluated
};

/// Several lines, each with its end.
std::string describe_plan(const TrainOptions& options, const compile::StepPrograms& programs,
                          const RunFacts& facts);

/// Prints what --print-config, --print-plan and --print-program ask for, then describe_plan.
/// `options` are those of the run, which resuming may have changed since `config` was resolved.
void print_plan(const ResolvedConfig& config, const TrainOptions& options,
                const compile::StepPrograms& programs, const RunFacts& facts,
                const RunListeners& listeners);

/// "1,234,567".
std::string grouped(std::int64_t number);

}  // namespace strata::train
