// Foresees how long steps take: the simulator runs the Programs of a step in the engine's order.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compile/step_programs.h"
#include "machine/machine.h"
#include "runtime/execute/observer.h"
#include "runtime/simulator/instruction_work.h"

namespace strata::plan {

struct QueueForecast {
  std::array<double, 3> busy_seconds{};  ///< by runtime::Pass
  double waited_seconds = 0;             ///< by the compute queue, for this one
  [[nodiscard]] double all_busy_seconds() const;
};

struct Forecast {
  /// Time from the end of one step to the end of the next, once two take equally long; if they
  /// never do, that of the last step simulated.
  double step_seconds = 0;
  std::array<QueueForecast, runtime::kQueues> queues{};  ///< of rank 0 in such a step
  /// The resource that works longest: "compute", "host memory", "link up", "network", "links
  /// between ranks" (of one host, which collectives use), and others of runtime::HostResources.
  std::string bound_by;
  double bound_part = 0;  ///< of the step, that this resource works: 0 to 1
  // Times that are set if they were asked for and there is a Program for them.
  std::optional<double> drain_seconds;          ///< after the end of the last step
  std::optional<double> evaluate_seconds;       ///< one micro-batch
  std::optional<double> snapshot_step_seconds;  ///< a step with a snapshot, nothing before or after
};

struct ForecastRequest {
  bool drain = false, evaluate = false, snapshot = false;
  std::vector<runtime::Observer*> observers = {};  ///< of rank 0, for TraceOf::device
};

/// One rank stands for all, since all do the same at the same times: a collective takes what it
/// takes alone. `machine`: as one rank has it. The data are of Plan::shape.
Forecast foresee(const compile::StepPrograms& programs, const machine::Machine& machine,
                 const ForecastRequest& request = {});

/// All ranks of a mesh, each with its Programs and times (or one for all), on hosts of
/// `ranks_per_host`.
struct SimulatedStep {
  std::vector<const compile::StepPrograms*> ranks;
  std::vector<const runtime::InstructionTimes*> times;
  int ranks_per_host = 1;
};
Forecast foresee(const SimulatedStep& step, const ForecastRequest& request = {});

}  // namespace strata::plan
