#include "train/report/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/format_bytes.h"
#include "machine/hardware_file.h"
#include "machine/host_memory.h"
#include "runtime/program/memory_timeline.h"
#include "train/engine/memory_report.h"
#include "train/report/warming_steps.h"

namespace strata::train {
namespace {

using runtime::Tier;

constexpr std::size_t kHolders = 8, kMoments = 5, kSpikes = 20;

std::string with_unit(std::int64_t bytes) {
  return fmt::format("{} ({} bytes)", format_bytes(bytes), bytes);
}

std::string describe(const runtime::Holder& holder) {
  return fmt::format("{:>12}  {:<22} {}{}\n", format_bytes(holder.bytes), holder.block,
                     name_of(holder.role),
                     holder.scratch      ? ", scratch"
                     : holder.persistent ? ", kept between steps"
                                         : "");
}

/// Mean bytes over the foreseen time of a step.
double mean_bytes(const std::vector<ProgramTimeline>& timelines, Tier tier) {
  double area = 0, time = 0;
  for (const ProgramTimeline& timeline : timelines) {
    double end = 0;
    for (const TimeSpan& span : timeline.foreseen) end = std::max(end, span.end_ms);
    area += timeline.runs_per_step * end * timeline.mean_bytes(tier);
    time += timeline.runs_per_step * end;
  }
  return time > 0 ? area / time : 0;
}

/// Bytes of one tier in one pass.
struct PassBytes {
  double area = 0, time = 0;  ///< bytes times ms, ms
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  /// Where nothing takes time, the middle.
  [[nodiscard]] double mean() const {
    return time > 0 ? area / time : static_cast<double>(least + most) / 2;
  }
};

/// An instruction counts for the pass that it belongs to, until the next one begins.
void add_passes(const ProgramTimeline& timeline, Tier tier,
                std::map<runtime::Pass, PassBytes>& passes) {
  const std::vector<double> moments = timeline.foreseen_moments();
  double end = 0;
  for (const TimeSpan& span : timeline.foreseen) end = std::max(end, span.end_ms);
  for (std::size_t i = 0; i < moments.size(); ++i) {
    PassBytes& pass = passes[timeline.program->instructions[i].pass];
    const std::int64_t bytes = timeline.bytes(tier, i);
    const double ms =
        timeline.runs_per_step * ((i + 1 < moments.size() ? moments[i + 1] : end) - moments[i]);
    pass.area += ms * static_cast<double>(bytes);
    pass.time += ms;
    pass.least = std::min(pass.least, bytes);
    pass.most = std::max(pass.most, bytes);
  }
}

/// The highest instruction of each block and pass, the highest first.
std::string highest_moments(const ProgramTimeline& timeline, Tier tier) {
  const runtime::Program& program = *timeline.program;
  std::map<std::pair<int, runtime::Pass>, std::size_t> highest;
  for (std::size_t i = 0; i < timeline.live.size(); ++i) {
    const runtime::Instruction& in = program.instructions[i];
    const auto [at, fresh] = highest.try_emplace({in.block, in.pass}, i);
    if (timeline.bytes(tier, i) > timeline.bytes(tier, at->second)) at->second = i;
  }
  std::vector<std::pair<std::int64_t, std::size_t>> moments;
  for (const auto& [where, i] : highest) moments.emplace_back(-timeline.bytes(tier, i), i);
  std::ranges::sort(moments);
  moments.resize(std::min(moments.size(), kMoments));
  std::string text = "  highest moments of blocks and passes:\n";
  for (const auto& [minus_bytes, i] : moments)
    text +=
        fmt::format("{:>14}  {}\n", format_bytes(-minus_bytes), describe_instruction(program, i));
  return text;
}

/// Bytes in use in each pass, over the foreseen time of a step.
std::string describe_passes(const std::vector<ProgramTimeline>& timelines, Tier tier) {
  std::map<runtime::Pass, PassBytes> passes;
  for (const ProgramTimeline& timeline : timelines) add_passes(timeline, tier, passes);
  std::string text =
      fmt::format("  bytes in use by pass:{:>20}{:>13}{:>13}\n", "mean", "min", "max");
  for (const auto& [pass, bytes] : passes)
    text += fmt::format("    {:<24}{:>13}{:>13}{:>13}\n", name_of(pass), format_bytes(bytes.mean()),
                        format_bytes(bytes.least), format_bytes(bytes.most));
  return text;
}

std::string describe_tier(const RunReport& report, Tier tier) {
  const std::int64_t arena = report.programs.taken_bytes(tier);
  const PeakMoment peak = find_peak(report.timelines, tier);
  if (arena == 0 || peak.timeline == nullptr) return "";
  const double mean = mean_bytes(report.timelines, tier);
  std::string text = fmt::format(
      "\n{}: arena {}\n"
      "  peak {} ({:.1f} % of the arena), first at {}\n"
      "  in use on average over the foreseen step {} ({:.1f} %)\n",
      name_of(tier), with_unit(arena), with_unit(peak.bytes),
      100.0 * static_cast<double>(peak.bytes) / static_cast<double>(arena),
      describe_instruction(*peak.timeline->program, peak.instruction), format_bytes(mean),
      100.0 * mean / static_cast<double>(arena));
  std::vector<runtime::Holder> holders = runtime::MemoryTimeline(*peak.timeline->program)
                                             .holders_at(tier, static_cast<int>(peak.instruction));
  if (tier == Tier::disk)  // what only passes through its arena (StepPrograms::outlet)
    std::erase_if(holders, [](const auto& h) { return h.role == runtime::Role::snapshot; });
  const std::size_t all = holders.size();
  holders.resize(std::min(all, kHolders));
  text += fmt::format("  who fills the peak ({} of {}):\n", holders.size(), all);
  for (const runtime::Holder& holder : holders) text += "  " + describe(holder);
  return text + describe_passes(report.timelines, tier) + highest_moments(*peak.timeline, tier);
}

std::string describe_modes(const RunReport& report) {
  std::string text =
      "\nwhat the forward pass of a micro-batch leaves on the device for the backward pass\n";
  for (const LayerMode& mode : layer_modes(report))
    text += fmt::format("  {:<22} {:>12} kept, {:>12} saved, step {:.4g} s foreseen\n", mode.name,
                        format_bytes(mode.kept_bytes), format_bytes(mode.freed_bytes),
                        mode.step_seconds);
  return text;
}

std::string describe_steps(const RunReport& report) {
  const std::vector<StepRow>& steps = report.measured.steps;
  std::string text =
      fmt::format("\nstep: foreseen {:.4g} s ({})\n", report.foreseen.seconds, report.foreseen.how);
  if (steps.empty()) return text + "  nothing was run\n";
  const auto seconds = [](const StepRow& row) { return row.seconds; };
  const auto [least, most] = std::ranges::minmax_element(steps, {}, seconds);
  const std::size_t left_out = warming_steps(steps.size());
  double sum = 0, rest = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    sum += steps[i].seconds;
    if (i >= left_out) rest += steps[i].seconds / static_cast<double>(steps.size() - left_out);
  }
  text += fmt::format(
      "  measured: mean {:.4g} s of {} {}{}, {:+.1f} % of what was foreseen; of all {} {:.4g} s\n"
      "  min {:.4g} s (step {}), max {:.4g} s (step {}), first {:.4g} s, last {:.4g} s\n",
      rest, steps.size() - left_out, steps.size() - left_out == 1 ? "step" : "steps",
      without_warming_text(steps.size()),
      report.foreseen.seconds > 0 ? 100 * (rest / report.foreseen.seconds - 1) : 0.0, steps.size(),
      sum / static_cast<double>(steps.size()), least->seconds, least->step, most->seconds,
      most->step, steps.front().seconds, steps.back().seconds);
  if (!report.measured.phases.empty())
    text += fmt::format("  measured in steps {} to {}, ms of a step:{:>21} {:>10} {:>10}\n",
                        report.measured.first_measured, report.measured.last_measured, "mean",
                        "min", "max");
  for (const PhaseTime& phase : report.measured.phases)
    text += fmt::format("    {:<51} {:>10.3f} {:>10.3f} {:>10.3f}\n", phase.name,
                        1e3 * phase.mean_seconds, 1e3 * phase.min_seconds, 1e3 * phase.max_seconds);
  const std::vector<Spike> spikes = find_spikes(steps);
  text += fmt::format("  steps that stand out: {}\n", spikes.size());
  for (std::size_t i = 0; i < std::min(spikes.size(), kSpikes); ++i)
    text += fmt::format("    step {}: {}\n", spikes[i].step, spikes[i].what);
  if (spikes.size() > kSpikes) text += "    and more, in steps.csv\n";
  return text;
}

std::string describe_totals(const RunReport& report) {
  const std::vector<StepRow>& steps = report.measured.steps;
  if (steps.empty()) return "";
  const bool on_host = report.machine.host_is_device();
  const std::int64_t planned = report.programs.arena_bytes(Tier::pinned) +
                               report.programs.arena_bytes(Tier::pageable) +
                               (on_host ? report.programs.arena_bytes(Tier::device) : 0);
  std::string text =
      fmt::format("\nthis process at most: {}, of which {} are planned arenas in host memory\n",
                  with_unit(steps.back().peak_rss_bytes), format_bytes(planned));
  text += fmt::format("  after step {}: at most {}; after step {}: {}\n", steps.front().step,
                      format_bytes(steps.front().peak_rss_bytes), steps.back().step,
                      format_bytes(steps.back().peak_rss_bytes));
  if (steps.front().device_bytes && steps.back().device_bytes)
    text += fmt::format("the device in use by all processes: {} after step {}, {} after step {}\n",
                        format_bytes(*steps.front().device_bytes), steps.front().step,
                        format_bytes(*steps.back().device_bytes), steps.back().step);
  if (const auto& device = report.measured.device)
    text += fmt::format("the device at the end: {} in use by all processes, of {}\n",
                        with_unit(device->total_bytes - device->free_bytes),
                        format_bytes(device->total_bytes));
  return text;
}

/// "It failed after step 3: out of memory"; "" where nothing failed.
std::string describe_failure(const RunReport& report) {
  if (report.failure.empty()) return "";
  const std::vector<StepRow>& steps = report.measured.steps;
  return fmt::format(
      "It failed {}: {}\n",
      steps.empty() ? "before any step was done" : fmt::format("after step {}", steps.back().step),
      report.failure);
}

std::string describe_settings(const RunReport& report) {
  std::string text = "\nsettings\n";
  for (const ResolvedField& field : report.settings)
    text += fmt::format("  {} = {} ({}{}{})\n", field.name, field.value, name_of(field.origin),
                        field.where.empty() ? "" : ": ", field.where);
  return text;
}

}  // namespace

std::string summary_text(const RunReport& report) {
  std::string text = fmt::format(
      "{}: memory and time of rank {} of {} ({}), on {}\n"
      "{}{}\n\nmemory planned\n",
      report.measured.steps.empty() ? "plan" : "run", report.rank, report.ranks, report.model,
      report.device, describe_failure(report),
      report.ranks > 1 ? "Other ranks hold other parts of sharded state; their bytes differ little."
                       : "There is one rank.");
  text += format_memory(count_memory(report.programs));
  for (const Tier tier : runtime::kAllTiers) text += describe_tier(report, tier);
  text += describe_totals(report) + describe_modes(report) + describe_steps(report);
  text += "\nplan\n" + report.programs.settings.plan.to_json() + "\nmachine\n" +
          machine::to_json(report.machine) + "\n";
  return text + describe_settings(report);
}

}  // namespace strata::train
