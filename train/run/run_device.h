// Where a rank's Programs run, and the communicator of their collectives there.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "kernels/device/device.h"
#include "machine/machine.h"
#include "train/config/options.h"
#include "train/engine/build_programs.h"
#include "train/engine/execution_site.h"

namespace strata::train {

/// The CPU, or the GPU that this rank takes: ranks of a host share its GPUs in turn.
class RunDevice {
 public:
  /// Throws HostError when a GPU is demanded and there is none, saying why. Of `options` what says
  /// which device, and how it computes. `host` and this object outlive the engine.
  RunDevice(const TrainOptions& options, int local_rank, comm::Communicator& host);

  /// Collective, for planning: the machine of a rank with `threads` threads, whose CPU is the
  /// weakest of all ranks', for which the others wait: all schedule alike.
  [[nodiscard]] machine::Machine machine(int threads, int local_world) const;
  /// Carries the Programs' collectives.
  [[nodiscard]] comm::Communicator& communicator() const {
    return communicator_ ? *communicator_ : host_;
  }
  /// For an engine whose host has `threads` threads, which start now.
  [[nodiscard]] std::unique_ptr<ExecutionSite> make_site(const TrainOptions& options, int threads);
  /// Throws OutOfMemory when the device has less free than `arena_bytes`; the host's memory is
  /// require_host_memory's.
  void require_memory(std::int64_t arena_bytes) const;
  /// That an arena may have of the device now; nothing on the CPU, whose arena is in host memory.
  [[nodiscard]] std::optional<std::int64_t> free_bytes() const;
  /// What the device has and has free; nothing on the CPU.
  [[nodiscard]] std::optional<kernels::DeviceMemoryFacts> memory() const;
  /// Collective, before the engine is made. Chooses algorithms of the device's libraries: those of
  /// --choices or of the model's directory, the rest now; --choices then holds all of them. Loads
  /// what is loaded at first use (train/engine/warm_up.h); throws OutOfMemory when that leaves less
  /// than the arena takes.
  void prepare(const compile::StepPrograms& programs, const TrainOptions& options);
  /// Files, by name, that belong beside saved weights.
  [[nodiscard]] std::map<std::string, std::string> files() const;
  /// What people should know: slower ways that had to be taken.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// After some steps: what the device has in use, beside what was predicted: what it had before
  /// the arena, and the arena. Empty on the CPU.
  [[nodiscard]] std::string describe_use(std::int64_t arena_bytes) const;
  /// What --check-device has compared.
  [[nodiscard]] const runtime::LockstepReport& compared() const { return compared_; }
  /// The node of the host's memory that it is near to, where that is known.
  [[nodiscard]] std::optional<int> node() const;
  /// One line: the GPU, or why it is the CPU where that was not asked for.
  [[nodiscard]] const std::string& description() const { return description_; }
  void close();

 private:
  void choose(const compile::StepPrograms& programs, const TrainOptions& options);
  void make(const TrainOptions& options, int local_rank);

  comm::Communicator& host_;
  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<comm::Communicator> communicator_;
  runtime::LockstepReport compared_;
  std::string description_;
  std::vector<std::string> notes_;
  std::int64_t used_before_bytes_ = 0;  ///< of the device, loaded: driver, libraries, others
};

}  // namespace strata::train
