#include "train/planning/memory_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/byte_size.h"
#include "core/error.h"
#include "core/format_bytes.h"
#include "core/too_few_bytes.h"
#include "runtime/execute/trace.h"

namespace strata::train {

namespace {

constexpr std::int64_t kMiB = 1 << 20;

/// Returns what a process that computes takes for code, libraries, what planning leaves, buffers
/// and stacks, as measured: bench/process_peaks.py, docs/log.md. Ranks of a host share the pages of
/// code and libraries.
std::int64_t computing_bytes(std::int64_t threads, int local_ranks) {
  constexpr std::int64_t kShared = 17 * kMiB, kOwn = 14 * kMiB, kThread = kMiB;
  // oneDNN packs operands of a thread's tile into at most 1.5 MiB, and frees them. Few threads have
  // their most at once; with many, the sum is what counts.
  constexpr std::int64_t kBusyOwn = 4 * kMiB, kBusyThread = 2 * kMiB;
  return kShared / local_ranks +
         std::max(kOwn + kThread * threads, kBusyOwn + kBusyThread * threads);
}

}  // namespace

std::int64_t process_bytes(const TrainOptions& options, const machine::Machine& machine,
                           int local_ranks) {
  constexpr std::int64_t kBesideDevice = 46 * kMiB, kCheckpoints = 20 * kMiB,
                         kWritingTrace = 8 * kMiB;
  const std::int64_t run = machine.host_is_device()
                               ? computing_bytes(machine.device.capabilities.workers, local_ranks)
                               : kBesideDevice;
  return run + (options.output.empty() ? 0 : kCheckpoints) +
         (options.trace.empty() ? 0 : runtime::TraceRecorder::most_bytes({}) + kWritingTrace);
}

std::int64_t bytes_beside_arenas(const TrainOptions& options, const machine::Machine& machine,
                                 int local_ranks) {
  constexpr std::int64_t kOfPeers = 8 * kMiB;
  return process_bytes(options, machine, 1) + (local_ranks > 1 ? kOfPeers : 0);
}

std::int64_t process_bytes(const TrainOptions& options, const machine::Machine& machine,
                           int local_ranks, const compile::StepPrograms& programs) {
  using runtime::Tier;
  return process_bytes(options, machine, local_ranks) + programs.arena_bytes(Tier::pinned) +
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

std::int64_t arenas_of_process(const TrainOptions& options, const machine::Machine& machine,
                               int local_ranks) {
  const std::int64_t target = target_bytes(options.target, 0, "");
  if (target == 0) return kUnlimitedMemory;
  return std::max<std::int64_t>(1, target - bytes_beside_arenas(options, machine, local_ranks));
}

std::int64_t bytes_to_measure_in(const TrainOptions& options, const machine::Machine& machine,
                                 int local_ranks) {
  const std::int64_t host = options.offload.host_memory_bytes;
  const std::int64_t most = host == kUnlimitedMemory ? kUnlimitedMemory : host / local_ranks;
  return machine.host_is_device() ? std::min(most, arenas_of_process(options, machine, local_ranks))
                                  : most;
}

}  // namespace strata::train
