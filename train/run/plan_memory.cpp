#include "train/run/plan_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "machine/host_memory.h"
#include "train/planning/memory_target.h"
#include "train/planning/planning_text.h"

namespace strata::train {
namespace {

std::int64_t least_of_ranks(RunParts& run, std::int64_t mine) {
  return std::ranges::min(comm::gather_numbers(*run.communicator, mine));
}

MemoryBudget budget_of(RunParts& run) {
  const RankContext& context = run.request.context;
  const TargetOptions& target = run.options.target;
  MemoryBudget budget;
  budget.seat = run.device->communicator().seat();
  budget.machine = run.machine;
  budget.local_ranks = context.local_world;
  budget.has_drive = !run.options.offload.nvme_paths.empty();
  budget.host_bytes = least_of_ranks(run, machine::available_host_bytes());
  if (const auto memory = run.device->memory()) {
    const std::int64_t total = least_of_ranks(run, memory->total_bytes);
    budget.most_bytes = total;
    // What the device already holds, and what libraries still take, is not the arena's.
    const std::int64_t taken = memory->total_bytes - *run.device->free_bytes();
    budget.beside_bytes = -least_of_ranks(run, -taken);
    budget.device_bytes =
        beside(std::min(target_bytes(target, total, "the device"), total), budget.beside_bytes,
               target, "what driver, libraries and other processes hold");
  } else {
    const std::int64_t all = budget.host_bytes / context.local_world;
    budget.most_bytes = all;
    budget.beside_bytes = process_bytes(run.options);
    const std::int64_t each = beside(target_bytes(target, all, "each process on this machine"),
                                     budget.beside_bytes, target, "a process without any arena");
    budget.host_bytes = each * context.local_world;
  }
  budget.host_bytes = std::min(budget.host_bytes, run.options.offload.host_memory_bytes);
  return budget;
}

/// The answer of rank 0 as text for all ranks: changes of settings, or what is wrong.
struct Verdict {
  std::string failure;
  std::string changes;
};

Verdict plan_here(RunParts& run, const MemoryBudget& budget) {
  ProgramRequest request{run.request.model, run.options};
  request.evaluate = !run.options.eval_data.empty() || evaluates_during(run.options);
  request.local_ranks = run.request.context.local_world;
  try {
    const PlannedRun planned = plan_options(request, run.request.config, budget);
    if (!planned.answer.chosen) return {describe_refusal(planned, run.request.config, budget), ""};
    run.listeners.print(describe_planned(planned, run.request.config, budget));
    return {"", to_lines(planned.changes)};
  } catch (const InvalidArgument& error) {
    return {error.what(), ""};
  }
}

}  // namespace

void plan_memory(RunParts& run) {
  if (run.options.target.memory.empty()) return;
  const MemoryBudget budget = budget_of(run);
  Verdict verdict;
  if (run.first) verdict = plan_here(run, budget);
  verdict.failure = comm::gather_texts(*run.communicator, verdict.failure)[0];
  verdict.changes = comm::gather_texts(*run.communicator, verdict.changes)[0];
  if (!verdict.failure.empty())
    throw OutOfMemory(
        fmt::format("--target-memory {}: {}", run.options.target.memory, verdict.failure));
  set_planned(from_lines(verdict.changes), run.request.config);
  run.options = run.request.config.options;
}

}  // namespace strata::train
