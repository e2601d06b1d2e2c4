#include "train/report/measured_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/format_bytes.h"

namespace strata::train {
namespace {

using Event = runtime::TraceRecorder::Event;
using runtime::Queue;

constexpr double kMsPerNs = 1e-6, kSecondsPerNs = 1e-9;

const runtime::Instruction& instruction_of(const Event& event) {
  return event.program->instructions[static_cast<std::size_t>(event.instruction)];
}

bool trains(const Event& event) { return event.program->name != "evaluate"; }

/// Returns the first step of which instructions were dropped, or may have been: a queue had no room
/// left in it.
std::int64_t first_cut_step(const runtime::TraceRecorder& recorder) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Queue queue : runtime::kAllQueues)
    if (recorder.dropped(queue) > 0) first = std::min(first, recorder.recorded(queue).back().step);
  return first;
}

/// Goes through what whole steps ran to train.
template <typename Hear>
void for_each_event(const runtime::TraceRecorder& recorder, const Hear& hear) {
  const std::int64_t cut = first_cut_step(recorder);
  for (const Queue queue : runtime::kAllQueues)
    for (const Event& event : recorder.recorded(queue))
      if (trains(event) && event.step < cut) hear(event);
}

/// Passes of computation first, in their order, then the other queues.
std::pair<int, std::string_view> phase_of(const runtime::Instruction& in) {
  if (in.queue == Queue::compute) return {static_cast<int>(in.pass), name_of(in.pass)};
  return {100 + static_cast<int>(in.queue), name_of(in.queue)};
}

void add_phases(const runtime::TraceRecorder& recorder, MeasuredRun& run) {
  std::map<std::pair<int, std::string_view>, std::map<std::int64_t, std::int64_t>> ns;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for_each_event(recorder, [&](const Event& event) {
    ns[phase_of(instruction_of(event))][event.step] += event.end_ns - event.begin_ns;
    first = std::min(first, event.step);
    last = std::max(last, event.step);
  });
  if (last == 0) return;
  run.first_measured = first;
  run.last_measured = last;
  for (const auto& [phase, by_step] : ns) {
    PhaseTime time{.name = std::string(phase.second),
                   .min_seconds = std::numeric_limits<double>::max()};
    for (const auto& [step, taken] : by_step) {
      const double seconds = kSecondsPerNs * static_cast<double>(taken);
      time.mean_seconds += seconds / static_cast<double>(by_step.size());
      time.min_seconds = std::min(time.min_seconds, seconds);
      time.max_seconds = std::max(time.max_seconds, seconds);
    }
    run.phases.push_back(time);
  }
}

/// The times of one Program's instructions.
void add_times(const runtime::TraceRecorder& recorder, ProgramTimeline& timeline) {
  const std::size_t count = timeline.program->instructions.size();
  std::int64_t last_run = -1, begin_ns = std::numeric_limits<std::int64_t>::max();
  std::vector<std::pair<std::int64_t, std::int64_t>> sums(count);  // ns, runs
  const auto for_each_of_program = [&](const auto& hear) {
    for_each_event(recorder, [&](const Event& event) {
      if (event.program->name == timeline.program->name) hear(event);
    });
  };
  for_each_of_program([&](const Event& event) {
    last_run = std::max(last_run, event.run);
    auto& [ns, runs] = sums[static_cast<std::size_t>(event.instruction)];
    ns += event.end_ns - event.begin_ns;
    ++runs;
  });
  if (last_run < 0) return;
  for_each_of_program([&](const Event& event) {
    if (event.run == last_run) begin_ns = std::min(begin_ns, event.begin_ns);
  });
  timeline.measured.resize(count);
  timeline.measured_ms.resize(count);
  for_each_of_program([&](const Event& event) {
    if (event.run == last_run)
      timeline.measured[static_cast<std::size_t>(event.instruction)] =
          TimeSpan{kMsPerNs * static_cast<double>(event.begin_ns - begin_ns),
                   kMsPerNs * static_cast<double>(event.end_ns - begin_ns)};
  });
  for (std::size_t i = 0; i < count; ++i)
    if (const auto& [ns, runs] = sums[i]; runs > 0)
      timeline.measured_ms[i] = kMsPerNs * static_cast<double>(ns) / static_cast<double>(runs);
}

}  // namespace

std::vector<Spike> find_spikes(const std::vector<StepRow>& steps) {
  constexpr std::int64_t kRiseBytes = 100'000'000;
  constexpr std::size_t kSteps = 10;
  constexpr double kTimes = 1.5;
  std::vector<Spike> spikes;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (const std::int64_t rise = steps[i].peak_rss_bytes - steps[i - 1].peak_rss_bytes;
        rise > kRiseBytes)
      spikes.push_back({steps[i].step, fmt::format("the process grew by {}", format_bytes(rise))});
    if (steps[i].device_bytes && steps[i - 1].device_bytes)
      if (const std::int64_t rise = *steps[i].device_bytes - *steps[i - 1].device_bytes;
          rise > kRiseBytes)
        spikes.push_back(
            {steps[i].step, fmt::format("the device filled by {}", format_bytes(rise))});
    if (i == 1) continue;
    const std::size_t first = std::max<std::size_t>(1, i > kSteps ? i - kSteps : 0);
    double mean = 0;
    for (std::size_t j = first; j < i; ++j)
      mean += steps[j].seconds / static_cast<double>(i - first);
    if (steps[i].seconds > kTimes * mean)
      spikes.push_back(
          {steps[i].step, fmt::format("{:.4g} s, {:.2f} x the mean of the {} before",
                                      steps[i].seconds, steps[i].seconds / mean, i - first)});
  }
  return spikes;
}

void add_measured(const runtime::TraceRecorder& recorder, MeasuredRun& run,
                  std::vector<ProgramTimeline>& timelines) {
  add_phases(recorder, run);
  for (ProgramTimeline& timeline : timelines) add_times(recorder, timeline);
}

}  // namespace strata::train
