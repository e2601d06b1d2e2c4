// Plans without running: what a run would do and need, on this machine or on another.
#pragma once

#include <string>

#include "compile/compile.h"
#include "train/run/planning_site.h"
#include "train/run/run_listeners.h"
#include "train/run/training_run.h"

namespace strata::train {

/// True for --steps 0 with --print-plan or --check-config (`checks`): then no data are read and
/// nothing is allocated.
bool plans_only(const TrainOptions& options, bool checks);

/// Prints the plan of rank 0 of `request.context.world` ranks, and whether it fits into
/// --device-memory and --host-memory, or what is not given of these into the machine of --hardware
/// or this one. Plans for a device even if none is here, if --device cuda, --device-memory or
/// --hardware asks for it. With --target-memory the planner makes the settings first. Writes the
/// report of --memory-report, also of a plan that is refused, if its Programs were made. Throws
/// OutOfMemory with advice, IoError where a file cannot be written.
void print_plan_only(const RunRequest& request, const RunListeners& listeners);

/// Programs for the machine to plan for, and the memory that they exceed.
struct FoundPlan {
  compile::Compiled compiled;
  std::string lacking;  ///< of device, host or drives, for people; "": all fits
};

/// Compiles the Plan that --plan names, or the one that is found for the settings as they are.
/// Throws ConfigError for a Plan of another run.
FoundPlan find_plan(const RunRequest& request, const PlanningSite& site);

/// Writes the report of --memory-report for the settings of `request` as they are, and returns the
/// path of its page. Throws as print_plan_only.
std::string report_plan(const RunRequest& request);

}  // namespace strata::train
