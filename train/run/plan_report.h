// Describes a run before its first step: model, data, steps, division over ranks, devices, memory.
#pragma once

#include <optional>
#include <string>

#include "machine/figure.h"
#include "train/config/options.h"
#include "train/config/resolve.h"
#include "train/engine/build_programs.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// Facts for this description that the Programs do not know.
struct RunFacts {
  int ranks = 1;
  std::string transport;                        ///< backend between ranks
  std::string device;                           ///< the device that rank 0 computes on
  std::string place;                            ///< NUMA node; empty: there is one
  std::string disk;                             ///< empty: nothing lives on the disk
  double foreseen_seconds = 0;                  ///< time of a step
  std::string drive_wear;                       ///< drive_wear_text; empty: nothing is written
  machine::Source rates{};                      ///< source of the device's rates
  std::optional<std::int64_t> tokens;           ///< training data; nullopt: none are read
  std::optional<std::int64_t> held_out_tokens;  ///< nullopt: nothing is evaluated
};

/// Returns several lines, each ending with a newline.
std::string describe_plan(const TrainOptions& options, const compile::StepPrograms& programs,
                          const RunFacts& facts);

/// Prints what --print-config, --print-plan and --print-program ask for, then describe_plan().
/// `options` are those of the run; resuming may have changed them since `config` was resolved.
void print_plan(const ResolvedConfig& config, const TrainOptions& options,
                const compile::StepPrograms& programs, const RunFacts& facts,
                const RunListeners& listeners);

/// Writes the Plan to the file of --write-plan, if one is named. Throws IoError.
void write_plan(const TrainOptions& options, const runtime::Plan& plan);

/// A number with separators: "1,234,567".
std::string grouped(std::int64_t number);

}  // namespace strata::train
