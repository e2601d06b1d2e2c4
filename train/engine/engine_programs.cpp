// The Programs of an engine: loading them at its start, and swapping them between steps.
#include <fmt/core.h>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "comm/agreement.h"
#include "compile/fit.h"
#include "compile/safe_programs.h"
#include "core/error.h"
#include "runtime/program/budget.h"
#include "train/engine/engine.h"

namespace strata::train {

void Engine::check_programs(const compile::StepPrograms& programs) const {
  compile::require_safe(programs);
  std::vector<std::string> sequence;
  for (const auto& [key, program] : programs.programs) {
    if (const auto excess = runtime::over_budget(program, programs.settings.plan.budget_bytes);
        !excess.empty())
      throw OutOfMemory(excess.front());
    const auto lines = program.collective_sequence();
    sequence.insert(sequence.end(), lines.begin(), lines.end());
  }
  const std::int64_t host_bytes = compile::host_arena_bytes(programs);
  if (host_bytes > programs.settings.plan.host_bytes)
    throw OutOfMemory(
        fmt::format("the Programs take {} bytes of host memory, and their Plan allows {}",
                    host_bytes, programs.settings.plan.host_bytes));
  comm::require_equal_sequences(site_->host_communicator(), sequence);
}

void Engine::load_programs() {
  // Observers keep pointers to Programs that they have seen, so their executor must stay alive.
  if (executor_ != nullptr && !executor_parts_.observers.empty())
    retired_.push_back(std::move(executor_));
  executor_.reset();
  executor_ = site_->make_executor(executor_parts_);
  handles_.clear();
  const runtime::Plan& plan = programs_.settings.plan;
  micro_steps_ = zero::micro_steps(plan);
  batches_.resize(static_cast<std::size_t>(plan.micro_steps) *
                  static_cast<std::size_t>(plan.leaves_per_rank()));
  for (const auto& [key, program] : programs_.programs) handles_[key] = executor_->load(program);
}

void Engine::rehearse(const runtime::Rehearsal& rehearsal, runtime::Observer& observer) {
  require_drained("rehearse()");
  if (steps_started_ > 0) throw InvalidArgument("rehearse() after a step; state would be lost");
  runtime::ExecutorParts parts = executor_parts_;
  parts.observers = {&observer};
  const std::unique_ptr<runtime::Executor> executor = site_->make_executor(std::move(parts));
  const int program = executor->load(rehearsal.program);
  // Products of zeros take less power, and so run at a higher clock than those of a step.
  memory_.fill_with_numbers();
  executor->wait(executor->start(program, 0));
  memory_.clear_numbers();
  for (const std::string& name : rehearsal.written) memory_.clear(name);
}

void Engine::adopt(compile::StepPrograms programs) {
  require_drained("adopt()");
  if (lent_.use_count() > 1 || has_snapshot_)
    throw InvalidArgument("adopt() while a checkpoint is being saved; let the save end first");
  const runtime::Plan& plan = programs.settings.plan;
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw InvalidArgument(what);
  };
  require(
      plan.mesh == programs_.settings.plan.mesh && programs.settings.at == programs_.settings.at,
      "adopt() got Programs of another mesh, or another rank's");
  const auto is_state = [](const runtime::PersistentValue& value) {
    return value.role != runtime::Role::input;
  };
  for (const runtime::PersistentValue& value : programs_.persistent.values())
    if (is_state(value) &&
        (!programs.persistent.has(value.name) || programs.persistent.find(value.name) != value))
      throw InvalidArgument("adopt() got Programs that keep '" + value.name +
                            "' elsewhere, or not at all; state stays where it is");
  require(std::ranges::count_if(programs.persistent.values(), is_state) ==
                  std::ranges::count_if(programs_.persistent.values(), is_state) &&
              plan.saving == programs_.settings.plan.saving &&
              programs.outlet() == programs_.outlet(),
          "adopt() got Programs that keep more state, or save in another way");
  for (const runtime::Tier tier : runtime::kAllTiers) {
    const std::int64_t has = tier == runtime::Tier::disk ? disk_bytes_ : arena(tier).bytes();
    if (const std::int64_t needs = programs.arena_bytes(tier); needs > has)
      throw InvalidArgument(
          fmt::format("adopt() got Programs that take {} bytes of tier {}, and the engine has {}; "
                      "make it with those that need most",
                      needs, name_of(tier), has));
  }
  check_programs(programs);
  executor_->forget_recordings();
  programs_ = std::move(programs);
  last_run_ = -1;
  is_read_ahead_ = false;
  load_programs();
}

}  // namespace strata::train
