// Measurements that a run made of itself: its steps, and in some of them every instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device/device.h"
#include "runtime/execute/trace.h"
#include "train/report/program_timeline.h"

namespace strata::train {

struct StepRow {
  std::int64_t step = 0;  ///< counted from 1
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double seconds = 0;
  double tokens_per_second = 0;
  std::int64_t peak_rss_bytes = 0;           ///< highest of the process so far
  std::optional<std::int64_t> device_bytes;  ///< of the device in use, by whomever
};

/// Times of one pass of the compute queue, or of another queue, in the steps whose instructions
/// were measured.
struct PhaseTime {
  std::string name;
  double mean_seconds = 0, min_seconds = 0, max_seconds = 0;  ///< of a step
};

struct MeasuredRun {
  std::vector<StepRow> steps;
  std::int64_t first_measured = 0, last_measured = 0;  ///< steps of `phases`; 0: none
  std::vector<PhaseTime> phases;
  std::optional<kernels::DeviceMemoryFacts> device;  ///< when the run ended
};

/// A step that stands out, and why, for people.
struct Spike {
  std::int64_t step = 0;
  std::string what;
};
/// Finds steps in which the process's high-water mark, or the memory of the device that is in use,
/// rose by more than 100 MB, or which took more
/// than 1.5 times the mean of the up to ten before. The first step is not judged and not in the
/// mean, since memory is touched and libraries are loaded there.
std::vector<Spike> find_spikes(const std::vector<StepRow>& steps);

/// Adds what `recorder` saw of the steps that train, once their executor is idle. Phases go to
/// `run`, times of instructions to the timeline of the Program of the same name.
void add_measured(const runtime::TraceRecorder& recorder, MeasuredRun& run,
                  std::vector<ProgramTimeline>& timelines);

}  // namespace strata::train
