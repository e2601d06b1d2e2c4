#include "train/run/plan_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "comm/gather_texts.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "machine/host_memory.h"
#include "train/planning/memory_budget.h"
#include "train/planning/planning_text.h"
#include "train/planning/refusal_text.h"
#include "train/run/earlier_plan.h"
#include "train/run/memory_needs.h"
#include "train/run/plan_with_progress.h"
#include "train/run/planning_site.h"

namespace strata::train {
namespace {

std::int64_t least_of_ranks(RunParts& run, std::int64_t mine) {
  return std::ranges::min(comm::gather_numbers(*run.communicator, mine));
}

MemoryBudget budget_of(RunParts& run) {
  MachineFound found{.seat = run.device->communicator().seat(),
                     .machine = run.machine,
                     .local_ranks = run.request.context.planned_local_world(),
                     .has_drive = !run.options.offload.nvme_paths.empty(),
                     .host_bytes = least_of_ranks(run, machine::available_host_bytes()),
                     .is_here = true,
                     .owner = "each process on this machine",
                     .taken_by = "what driver, libraries and other processes hold"};
  if (const auto memory = run.device->memory()) {
    found.owner = "the device";
    found.device_bytes = least_of_ranks(run, memory->total_bytes);
    // Memory that the device already holds, and that libraries still take, is not the arena's.
    found.device_taken_bytes =
        -least_of_ranks(run, *run.device->free_bytes() - memory->total_bytes);
  }
  return budget_for(found, run.options);
}

/// The answer of rank 0 as text for all ranks: changes of settings, or what is wrong.
struct Verdict {
  std::string mistake;  ///< of the settings, whatever the memory
  std::string failure;  ///< nothing fits
  std::string changes;
};

/// The same settings under limits that the budget has: a plan fills what it may, and the limits of
/// an earlier one may be more than there is now.
std::vector<PlannedOption> within(std::vector<PlannedOption> changes, const MemoryBudget& budget) {
  for (PlannedOption& change : changes) {
    std::int64_t most = kUnlimitedMemory;
    if (change.name == "offload.device_memory_bytes") most = budget.device_bytes;
    if (change.name == "offload.host_memory_bytes" && budget.host_bytes > 0)
      most = budget.host_bytes;
    if (const auto bytes = parse_byte_size(change.value); bytes && most < *bytes)
      change.value = byte_size_text(most);
  }
  return changes;
}

/// Returns the request for Programs with these settings. Compiling them may take long, so it beats.
ProgramRequest programs_with(const RunParts& run, const TrainOptions& options) {
  ProgramRequest request = programs_of(run.request, options);
  request.beat = run.beat;
  return request;
}

/// True if Programs with these settings fit.
bool fits(const RunParts& run, const TrainOptions& options, const MemoryBudget& budget) {
  MachineMemory memory{budget.local_ranks, {}, budget.host_bytes};
  if (!budget.machine.host_is_device()) memory.device_bytes = budget.device_bytes;
  const auto holds = [&](const compile::Compiled& tried) {
    if (!tried.fit.fits()) return false;
    const MemoryNeeds needs = plan::memory_needs(tried.programs);
    return memory.holds(needs) && needs.disk <= budget.disk_bytes / budget.local_ranks;
  };
  return holds(plan_programs(programs_with(run, options), budget.seat, budget.machine,
                             savings_of(options), holds));
}

/// The settings that were planned for the checkpoint that the run will go on from, if they hold for
/// this one; else empty, and notes why.
std::optional<std::vector<PlannedOption>> earlier_settings(RunParts& run,
                                                           const MemoryBudget& budget) {
  const auto earlier = find_earlier_plan(run.options, restart_of(run.request.context));
  if (!earlier || earlier->plan.asked != run.target_plan.asked) return {};
  const auto planned = read_planned(earlier->plan.planned);
  if (!planned) {
    run.planned_anew_since = "this program does not know those of the checkpoint";
    return {};
  }
  const std::vector<PlannedOption> changes = within(*planned, budget);
  ResolvedConfig config = run.request.config;
  set_planned(changes, config);
  try {
    if (fits(run, config.options, budget)) {
      const std::string flags = flags_beside_target(changes);
      run.listeners.print(fmt::format("target memory {}: the settings of {}, planned for it: {}",
                                      run.options.target.memory, earlier->directory,
                                      flags.empty() ? "as asked" : flags));
      return changes;
    }
    run.planned_anew_since = "those of the checkpoint do not fit into the memory that is free now";
  } catch (const Error& error) {
    run.planned_anew_since = fmt::format("those of the checkpoint cannot be had: {}", error.what());
  }
  return {};
}

Verdict plan_here(RunParts& run, const MemoryBudget& budget) {
  if (const auto changes = earlier_settings(run, budget)) return {"", "", to_lines(*changes)};
  try {
    const PlannedRun planned =
        plan_with_progress(programs_with(run, run.options), run.request.config, budget,
                           [&](const auto& progress) { run.listeners.tell(Planning{progress}); });
    if (!planned.answer.chosen)
      return {"", describe_refusal(planned, run.request.config, budget), ""};
    ResolvedConfig config = run.request.config;
    set_planned(planned.changes, config);
    run.listeners.print(describe_planned(planned, config, budget));
    return {"", "", to_lines(planned.changes)};
  } catch (const InvalidArgument& error) {
    return {error.what(), "", ""};
  }
}

}  // namespace

void plan_memory(RunParts& run) {
  if (run.options.target.memory.empty()) return;
  const MemoryBudget budget = budget_of(run);
  run.target_plan.asked = asked_of_planner(run.request.config, budget.seat.ranks);
  Verdict verdict;
  if (run.first) verdict = plan_here(run, budget);
  verdict.mistake = comm::gather_texts(*run.communicator, verdict.mistake)[0];
  verdict.failure = comm::gather_texts(*run.communicator, verdict.failure)[0];
  verdict.changes = comm::gather_texts(*run.communicator, verdict.changes)[0];
  if (!verdict.mistake.empty()) throw InvalidArgument(verdict.mistake);
  if (!verdict.failure.empty())
    throw OutOfMemory(
        fmt::format("--target-memory {}: {}", run.options.target.memory, verdict.failure));
  run.target_plan.planned = verdict.changes;
  set_planned(from_lines(verdict.changes), run.request.config);
  run.options = run.request.config.options;
}

}  // namespace strata::train
