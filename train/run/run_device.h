// The device on which a rank's Programs run, and the communicator of their collectives.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/beat.h"
#include "core/rank_context.h"
#include "kernels/device/device.h"
#include "machine/machine.h"
#include "train/config/options.h"
#include "train/engine/build_programs.h"
#include "train/engine/execution_site.h"

namespace strata::train {

/// The CPU, or this rank's GPU: the ranks of a host take its GPUs in turn.
class RunDevice {
 public:
  /// Throws HostError, saying why, if a GPU is demanded and there is none. `options` say which
  /// device, and how it computes. `host` and this object must outlive the engine.
  RunDevice(const TrainOptions& options, const RankContext& context, comm::Communicator& host);

  /// Collective, for planning: the machine of a rank with `threads` threads. Takes the features of
  /// the weakest CPU of all ranks, for which the others wait, and the threads of the rank that has
  /// most, so that all plan alike.
  [[nodiscard]] machine::Machine machine(int threads, int local_world) const;
  /// The communicator of the Programs' collectives.
  [[nodiscard]] comm::Communicator& communicator() const {
    return communicator_ ? *communicator_ : host_;
  }
  /// Makes the site for an engine whose host has `threads` threads, and starts these.
  [[nodiscard]] std::unique_ptr<ExecutionSite> make_site(const TrainOptions& options, int threads);
  /// Says that the device has less than `arena_bytes` free; empty if it has as much.
  /// lacking_host_memory checks the host's memory.
  [[nodiscard]] std::string lacking_memory(std::int64_t arena_bytes) const;
  /// Bytes of the device that an arena may take now; nullopt on the CPU (host memory).
  [[nodiscard]] std::optional<std::int64_t> free_bytes() const;
  /// Returns what the device has and has free; nullopt on the CPU.
  [[nodiscard]] std::optional<kernels::DeviceMemoryFacts> memory() const;
  /// Collective, before the engine is made. Chooses algorithms of the device's libraries: takes
  /// those in --choices or the model's directory, chooses the rest, and writes all to --choices.
  /// Loads what would be loaded at first use (train/engine/warm_up.h). Returns what is lacking
  /// if less memory is left than the arena needs; empty if it suffices.
  [[nodiscard]] std::string prepare(const compile::StepPrograms& programs,
                                    const TrainOptions& options, const Beat& beat);
  /// Files, by name, to store beside saved weights.
  [[nodiscard]] std::map<std::string, std::string> files() const;
  /// Messages for people: slower ways that had to be taken.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// Compares, after some steps, the device memory in use with the prediction: what was in use
  /// before the arena, and the arena. Empty on the CPU.
  [[nodiscard]] std::string describe_use(std::int64_t arena_bytes) const;
  /// The results of --check-device.
  [[nodiscard]] const runtime::LockstepReport& compared() const { return compared_; }
  /// The NUMA node that the device is near to, if known.
  [[nodiscard]] std::optional<int> node() const;
  /// The GPU with its libraries, or "CPU": what computes, whatever it was chosen for.
  [[nodiscard]] std::string computer() const { return device_ ? description_ : "CPU"; }
  /// One line: the GPU, or why the CPU was taken without being asked for.
  [[nodiscard]] const std::string& description() const { return description_; }
  void close();

 private:
  void choose(const compile::StepPrograms& programs, const TrainOptions& options, const Beat& beat);
  void make(const TrainOptions& options, const RankContext& context);

  comm::Communicator& host_;
  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<comm::Communicator> communicator_;
  runtime::LockstepReport compared_;
  std::string description_;
  std::vector<std::string> notes_;
  std::int64_t used_before_bytes_ = 0;  ///< usage before the arena: driver, libraries, ...
};

}  // namespace strata::train
