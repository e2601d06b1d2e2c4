#include "train/run/plan_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "machine/host_memory.h"
#include "train/planning/memory_budget.h"
#include "train/planning/planning_text.h"

namespace strata::train {
namespace {

std::int64_t least_of_ranks(RunParts& run, std::int64_t mine) {
  return std::ranges::min(comm::gather_numbers(*run.communicator, mine));
}

MemoryBudget budget_of(RunParts& run) {
  MachineFound found{.seat = run.device->communicator().seat(),
                     .machine = run.machine,
                     .local_ranks = run.request.context.local_world,
                     .has_drive = !run.options.offload.nvme_paths.empty(),
                     .host_bytes = least_of_ranks(run, machine::available_host_bytes()),
                     .is_here = true,
                     .owner = "each process on this machine",
                     .taken_by = "what driver, libraries and other processes hold"};
  if (const auto memory = run.device->memory()) {
    found.owner = "the device";
    found.device_bytes = least_of_ranks(run, memory->total_bytes);
    // What the device already holds, and what libraries still take, is not the arena's.
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

Verdict plan_here(RunParts& run, const MemoryBudget& budget) {
  ProgramRequest request{run.request.model, run.options};
  request.evaluate = !run.options.eval_data.empty() || evaluates_during(run.options);
  request.local_ranks = run.request.context.local_world;
  try {
    const PlannedRun planned = plan_options(request, run.request.config, budget);
    if (!planned.answer.chosen)
      return {"", describe_refusal(planned, run.request.config, budget), ""};
    run.listeners.print(describe_planned(planned, run.request.config, budget));
    return {"", "", to_lines(planned.changes)};
  } catch (const InvalidArgument& error) {
    return {error.what(), "", ""};
  }
}

}  // namespace

void plan_memory(RunParts& run) {
  if (run.options.target.memory.empty()) return;
  const MemoryBudget budget = budget_of(run);
  Verdict verdict;
  if (run.first) verdict = plan_here(run, budget);
  verdict.mistake = comm::gather_texts(*run.communicator, verdict.mistake)[0];
  verdict.failure = comm::gather_texts(*run.communicator, verdict.failure)[0];
  verdict.changes = comm::gather_texts(*run.communicator, verdict.changes)[0];
  if (!verdict.mistake.empty()) throw InvalidArgument(verdict.mistake);
  if (!verdict.failure.empty())
    throw OutOfMemory(
        fmt::format("--target-memory {}: {}", run.options.target.memory, verdict.failure));
  set_planned(from_lines(verdict.changes), run.request.config);
  run.options = run.request.config.options;
}

}  // namespace strata::train
