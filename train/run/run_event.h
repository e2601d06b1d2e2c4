// Events that a run tells its listeners on each rank: plain values, except Planned, Equipping and
// Closing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "comm/communicator.h"
#include "comm/seat.h"
#include "compile/step_programs.h"
#include "core/error.h"
#include "core/status_page.h"
#include "kernels/device/device.h"
#include "kernels/ops/step_state.h"
#include "machine/machine.h"
#include "runtime/execute/observer.h"
#include "train/config/options.h"
#include "train/data/tokenizer_tool.h"
#include "train/run/planning_beat.h"
#include "train/run/step_bound.h"

namespace strata::train {

/// A message for people, without a newline at its end.
struct Note {
  enum class Level : std::uint8_t { text, note, warning, failure };
  Level level = Level::text;
  std::string text;
};

/// Progress of turning a long text into tokens; nullopt: it is done, or there was no text.
struct Encoding {
  std::optional<EncodingProgress> progress;
};

/// Progress of the search for settings; nullopt: it is over.
struct Planning {
  std::optional<PlanningProgress> progress;
};

/// The phase that the rank enters; within steps, observers of Programs see the phases.
struct Entered {
  Phase phase = Phase::starting;
};

/// The Programs of the run are made. Whether the machine has the memory for them is found out next.
struct Planned {
  const compile::StepPrograms& programs;  ///< copy them to keep them
  const machine::Machine& machine;        ///< this rank's
  comm::Seat seat;                        ///< of this rank
  std::string device;                     ///< what computes, for people
  const TrainOptions& options;            ///< with what a checkpoint keeps of earlier runs
};

/// The engine is about to be made. A listener may add an observer of its Programs, which must live
/// as long as the session. All ranks tell this at the same point: listeners that each of them has,
/// in one order, may make calls that are collective over `ranks`.
struct Equipping {
  std::vector<runtime::Observer*>& observers;
  comm::Communicator& ranks;                       ///< the hosts' communicator
  const comm::Communicator& program_communicator;  ///< carries the Programs' collectives
  const machine::Machine& machine;                 ///< this rank's
  std::int64_t first_step = 0;                     ///< steps done by earlier processes
  std::int64_t steps = 0;                          ///< steps of the run
  double foreseen_seconds = 0;                     ///< of a step; 0: not known
  int local_ranks = 1;                             ///< ranks of this host, which share its memory
  /// Returns, until Closing or a failure, what the device has and has free; nullopt on the CPU.
  std::function<std::optional<kernels::DeviceMemoryFacts>()> device_memory = {};
  std::int64_t steps_per_print = 0;  ///< between lines that stay; 0: not said
};

/// The run goes on from a checkpoint, which is about to be loaded. Told again for an older one if
/// that could not be loaded.
struct GoesOn {
  std::int64_t step = 0;
  std::string directory;
  bool is_own = false;  ///< it lies in the run's output folder
};

/// Training begins after `first_step` steps of earlier processes.
struct Began {
  std::int64_t first_step = 0;
  std::int64_t step_samples = 0;  ///< of a step over all ranks: of a resumed run those of before
};

struct StepDone {
  std::int64_t step = 0;   ///< steps done, including this one
  std::int64_t steps = 0;  ///< steps of the run
  kernels::StepMetrics metrics;
  double seconds = 0;           ///< time of this step
  double work_seconds = 0;      ///< in which this rank waited for no other; 0: not measured
  double foreseen_seconds = 0;  ///< time that the simulator foresaw for every step
  double smoothed_seconds = 0;  ///< mean of the last steps, for people
  double tokens_per_second = 0;
  double smoothed_tokens_per_second = 0;
  double flops_per_second = 0;  ///< this rank's arithmetic on the model, recomputation included
  /// Model FLOPs utilization, a fraction (train/accounting); nullopt if the peak is unknown.
  std::optional<double> mfu;
  std::optional<StepBound> bound;     ///< set if something is offloaded
  std::int64_t arena_bytes = 0;       ///< on the device
  std::int64_t host_arena_bytes = 0;  ///< pinned and pageable
  std::int64_t pinned_arena_bytes = 0, pageable_arena_bytes = 0;
  std::int64_t disk_arena_bytes = 0;
  std::int64_t peak_rss_bytes = 0;
  /// Memory of the device in use by all processes, looked up at most once a second; nullopt: the
  /// CPU computes.
  std::optional<std::int64_t> device_bytes;
  /// Time since the last checkpoint, or the start of the process; nullopt: nothing is saved.
  std::optional<double> checkpoint_age_seconds;

  /// Time until the last step, at the speed of the latest ones.
  [[nodiscard]] double seconds_left() const {
    return smoothed_seconds * static_cast<double>(steps - step);
  }
};

/// An evaluation is about to run batch `batch`, counted from 0.
struct Evaluating {
  std::int64_t step = 0, steps = 0;
  std::int64_t batch = 0, batches = 0;
};

/// The loss on held-out data after `step` of `steps` steps.
struct Evaluated {
  std::int64_t step = 0, steps = 0;
  double loss = 0;
};

/// A checkpoint is committed.
struct Saved {
  std::int64_t step = 0;
  std::string directory;
  std::int64_t bytes = 0;
  double blocked_seconds = 0;  ///< time for which training stood still
  double seconds = 0;          ///< time from the save's beginning to its commit
  std::string not_finite;      ///< same as in SaveResult
};

/// The bytes that each rank moved between tiers in all steps: JSON objects, by rank
/// (train/run/transfer_report.h). Told if something is offloaded and metrics are asked for.
struct Transfers {
  std::int64_t steps = 0;
  std::vector<std::string> by_rank;
};

/// No further step is started; the last checkpoint and evaluation follow.
struct Stopped {
  enum class Why : std::uint8_t { all_done, request, not_finite, data };
  Why why = Why::all_done;
  std::int64_t step = 0, steps = 0;
};

/// Everything is saved, the engine is idle; the last chance for collective calls, as in Equipping.
struct Closing {
  comm::Communicator& ranks;
  const compile::StepPrograms& programs;  ///< the Programs that ran
  const machine::Machine& machine;        ///< this rank's, with what was measured
  std::string device;                     ///< name for people
  std::string failure;  ///< why the run fails although all is saved; "": it does not
};

/// The exception for which the run ends or cannot begin. The last event.
struct Refused {
  ExitCode code = ExitCode::internal;
  std::string text;
};

using RunEvent =
    std::variant<Note, Encoding, Planning, Entered, GoesOn, Planned, Equipping, Began, StepDone,
                 Evaluating, Evaluated, Saved, Transfers, Stopped, Closing, Refused>;

}  // namespace strata::train
