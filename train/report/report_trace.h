// The trace of a report: instructions of one rank, and what fills each tier while they run.
#pragma once

#include <string>

#include "runtime/execute/trace.h"
#include "train/report/run_report.h"

namespace strata::train {

/// Plays each training Program of the report once, at its foreseen times, one after the other.
void record_foreseen(const std::vector<ProgramTimeline>& timelines,
                     runtime::TraceRecorder& recorder);

/// Returns a trace for ui.perfetto.dev: what the recorder holds, and counters of bytes by purpose
/// in each tier.
std::string trace_json(const std::vector<ProgramTimeline>& timelines,
                       const runtime::TraceRecorder& recorder);

/// The most instructions of a queue that all these Programs have together.
std::size_t instructions_of_a_queue(const std::vector<ProgramTimeline>& timelines);

}  // namespace strata::train
