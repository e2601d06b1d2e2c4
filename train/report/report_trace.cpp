#include "train/report/report_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace strata::train {
namespace {

using runtime::Queue;
using runtime::Tier;

/// Writes counters at the beginning of what computes, where they change.
void append_counters(std::string& text, const std::vector<ProgramTimeline>& timelines,
                     const runtime::TraceRecorder& recorder, Tier tier) {
  std::map<std::string_view, const ProgramTimeline*> by_name;
  for (const ProgramTimeline& timeline : timelines) by_name[timeline.program->name] = &timeline;
  const auto t = static_cast<std::size_t>(tier);
  const PurposeBytes* before = nullptr;
  for (const runtime::TraceRecorder::Event& event : recorder.recorded(Queue::compute)) {
    const auto found = by_name.find(event.program->name);
    if (found == by_name.end()) continue;
    const PurposeBytes& bytes = found->second->live[static_cast<std::size_t>(event.instruction)][t];
    if (before != nullptr && *before == bytes) continue;
    before = &bytes;
    fmt::format_to(
        std::back_inserter(text),
        "{{\"ph\": \"C\", \"name\": \"{} bytes by purpose\", \"pid\": 0, \"ts\": {:.3f}, "
        "\"args\": {{",
        name_of(tier), static_cast<double>(event.begin_ns) / 1e3);
    for (const Purpose purpose : kAllPurposes)
      fmt::format_to(std::back_inserter(text), "{}\"{}\": {}",
                     purpose == kAllPurposes.front() ? "" : ", ", name_of(purpose),
                     bytes[static_cast<std::size_t>(purpose)]);
    text += "}},\n";
  }
}

}  // namespace

std::size_t instructions_of_a_queue(const std::vector<ProgramTimeline>& timelines) {
  std::array<std::size_t, runtime::kQueues> counts{};
  for (const ProgramTimeline& timeline : timelines)
    for (const runtime::Instruction& in : timeline.program->instructions)
      ++counts[static_cast<std::size_t>(in.queue)];
  return std::ranges::max(counts);
}

void record_foreseen(const std::vector<ProgramTimeline>& timelines,
                     runtime::TraceRecorder& recorder) {
  constexpr double kNsPerMs = 1e6;
  double begin_ms = 0;
  for (const ProgramTimeline& timeline : timelines) {
    const runtime::Program& program = *timeline.program;
    recorder.starting(program, 0);
    double end_ms = begin_ms;
    for (std::size_t i = 0; i < timeline.foreseen.size(); ++i) {
      const auto instruction = static_cast<int>(i);
      const TimeSpan& span = timeline.foreseen[i];
      recorder.begin(program, instruction);  // queues of the host are followed there
      recorder.executed(program, instruction,
                        static_cast<std::int64_t>(kNsPerMs * (begin_ms + span.begin_ms)),
                        static_cast<std::int64_t>(kNsPerMs * (begin_ms + span.end_ms)));
      end_ms = std::max(end_ms, begin_ms + span.end_ms);
    }
    begin_ms = end_ms;
  }
}

std::string trace_json(const std::vector<ProgramTimeline>& timelines,
                       const runtime::TraceRecorder& recorder) {
  std::string text = "{\"traceEvents\": [\n" + recorder.events();
  for (const Tier tier : runtime::kAllTiers)
    if (find_peak(timelines, tier).bytes > 0) append_counters(text, timelines, recorder, tier);
  return text + fmt::format(
                    "{{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": 0, \"args\": "
                    "{{\"sort_index\": 0}}}}\n], \"displayTimeUnit\": \"ms\", \"otherData\": "
                    "{{\"dropped\": {}}}}}\n",
                    recorder.dropped());
}

}  // namespace strata::train
