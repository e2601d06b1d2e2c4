#include "train/planning/memory_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/byte_size.h"
#include "core/error.h"
#include "core/format_bytes.h"
#include "core/too_few_bytes.h"
#include "runtime/execute/trace.h"

namespace strata::train {

std::int64_t process_bytes(const TrainOptions& options, const machine::Machine& machine) {
  // As measured, bench/process_peaks.py: at most 37 MiB with one thread, 46 with four, 77 with
  // eight.
  constexpr std::int64_t kMiB = 1 << 20, kRun = 34 * kMiB, kThread = 6 * kMiB;
  constexpr std::int64_t kThreadsBesideDevice = 2, kCheckpoints = 20 * kMiB,
                         kWritingTrace = 8 * kMiB;
  const std::int64_t threads =
      machine.host_is_device() ? machine.processor.cores.whole() : kThreadsBesideDevice;
  return kRun + kThread * threads + (options.output.empty() ? 0 : kCheckpoints) +
         (options.trace.empty() ? 0 : runtime::TraceRecorder::most_bytes({}) + kWritingTrace);
}

std::int64_t process_bytes(const TrainOptions& options, const machine::Machine& machine,
                           const compile::StepPrograms& programs) {
  using runtime::Tier;
  return process_bytes(options, machine) + programs.arena_bytes(Tier::pinned) +
         programs.arena_bytes(Tier::pageable) +
         (machine.host_is_device() ? programs.arena_bytes(Tier::device) : 0);
}

std::int64_t target_bytes(const TargetOptions& target, std::int64_t all, const std::string& what) {
  if (target.memory.empty() || target.memory == "auto") return all;
  const std::int64_t bytes = parse_byte_size(target.memory).value();
  if (bytes < kLeastMeantBytes)
    throw InvalidArgument(fmt::format("--target-memory: found '{}', {}", target.memory,
                                      too_few_bytes(target.memory, bytes, "24GB or 24GiB")));
  if (all > 0 && bytes > all)
    throw ConfigError(fmt::format("--target-memory {}: {} has {}; give at most that, or auto",
                                  target.memory, what, format_bytes(all)));
  return bytes;
}

std::int64_t arenas_of_process(const TrainOptions& options, const machine::Machine& machine) {
  const std::int64_t target = target_bytes(options.target, 0, "");
  if (target == 0) return kUnlimitedMemory;
  return std::max<std::int64_t>(1, target - process_bytes(options, machine));
}

}  // namespace strata::train
