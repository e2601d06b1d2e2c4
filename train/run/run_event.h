// What a training run tells whoever listens, on each rank: plain values, but for Equipping and
// Ending.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "comm/communicator.h"
#include "core/error.h"
#include "core/status_page.h"
#include "kernels/ops/step_state.h"
#include "machine/machine.h"
#include "runtime/execute/observer.h"
#include "train/data/tokenizer_tool.h"
#include "train/run/step_bound.h"

namespace strata::train {

/// Something said to people, without a newline at its end.
struct Note {
  enum class Level : std::uint8_t { text, note, warning, failure };
  Level level = Level::text;
  std::string text;
};

/// How far a long text is on its way to tokens; none: it has arrived, if there was one.
struct Encoding {
  std::optional<EncodingProgress> progress;
};

/// What the rank does from here on; in steps observers of Programs see it.
struct Entered {
  Phase phase = Phase::starting;
};

/// The engine is about to be made. A listener may add an observer of its Programs, which lives as
/// long as the session. All ranks hear it at once: listeners that each of them has, in one order,
/// may make calls that are collective over `ranks`.
struct Equipping {
  std::vector<runtime::Observer*>& observers;
  comm::Communicator& ranks;                       ///< of the host
  const comm::Communicator& program_communicator;  ///< of the Programs' collectives
  const machine::Machine& machine;                 ///< as this rank has it
  std::int64_t first_step = 0;                     ///< done by earlier processes
  std::int64_t steps = 0;                          ///< of the run
};

/// Training begins after `first_step` steps of earlier processes.
struct Began {
  std::int64_t first_step = 0;
};

struct StepDone {
  std::int64_t step = 0;   ///< steps done, counting this one
  std::int64_t steps = 0;  ///< of the run
  kernels::StepMetrics metrics;
  double seconds = 0;           ///< of this step
  double smoothed_seconds = 0;  ///< of the last steps: what people are shown
  double tokens_per_second = 0;
  double smoothed_tokens_per_second = 0;
  double flops_per_second = 0;  ///< this rank's model arithmetic, recomputation included
  /// Model FLOPs utilization, a fraction (train/accounting); empty when the device's peak is not
  /// known.
  std::optional<double> mfu;
  std::optional<StepBound> bound;     ///< where something is offloaded
  std::int64_t arena_bytes = 0;       ///< of the device
  std::int64_t host_arena_bytes = 0;  ///< pinned and pageable
  std::int64_t disk_arena_bytes = 0;
  std::int64_t peak_rss_bytes = 0;
  /// Since the last checkpoint or the start of the process; empty: nothing is saved.
  std::optional<double> checkpoint_age_seconds;

  /// Time until the last step, at the speed of the last ones.
  [[nodiscard]] double seconds_left() const {
    return smoothed_seconds * static_cast<double>(steps - step);
  }
};

/// Before batch `batch` of an evaluation, counted from 0.
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
  double blocked_seconds = 0;  ///< for which training stood still
  double seconds = 0;          ///< from its beginning to the commit
  std::string not_finite;      ///< as SaveResult's
};

/// What each rank moved between tiers in all steps: JSON objects, by rank
/// (train/run/transfer_report.h). Where something is offloaded and metrics are asked for.
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

/// Everything is saved; the engine is idle, and for the last time collective calls are possible, as
/// on Equipping.
struct Ending {
  comm::Communicator& ranks;
  std::string device;  ///< for people
};

/// Why the run ends, or cannot begin, as an exception says it. Nothing follows.
struct Refused {
  ExitCode code = ExitCode::internal;
  std::string text;
};

using RunEvent = std::variant<Note, Encoding, Entered, Equipping, Began, StepDone, Evaluating,
                              Evaluated, Saved, Transfers, Stopped, Ending, Refused>;

}  // namespace strata::train
