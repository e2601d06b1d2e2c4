#include "plan/disk_writes.h"

#include "zero/micro_step.h"

namespace strata::plan {

std::int64_t bytes_written_per_step(const compile::StepPrograms& programs) {
  std::int64_t written = 0;
  for (const auto& [key, program] : programs.programs) {
    if (!key.is_train()) continue;
    const int runs = zero::runs_per_step(programs.settings.plan, key.micro_step);
    for (const runtime::Instruction& in : program.instructions)
      if (in.demand.resource == machine::Resource::disk_write)
        written += runs * in.demand.moved_bytes;
  }
  return written;
}

double days_until_written(const machine::Disk& disk, double written_per_step, double step_seconds) {
  constexpr double kSecondsPerDay = 86'400;
  if (!disk.tbw.known() || written_per_step <= 0 || step_seconds <= 0) return 0;
  return disk.tbw / written_per_step * step_seconds / kSecondsPerDay;
}

}  // namespace strata::plan
