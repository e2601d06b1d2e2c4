// The site where an engine's Programs run, the CPU or a device, with the host's tools for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/host_stream.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/device/device.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/lockstep.h"

namespace strata::train {

/// Allocates host memory for collectives of `communicator`, which the caller registers with it.
runtime::Arena make_shared_arena(const comm::Communicator& communicator, const std::string& name,
                                 std::int64_t bytes);

/// Runs an engine's Programs. The engine owns it; it borrows communicators and device.
class ExecutionSite {
 public:
  virtual ~ExecutionSite() = default;
  ExecutionSite(const ExecutionSite&) = delete;
  ExecutionSite& operator=(const ExecutionSite&) = delete;

  /// Allocates zeroed memory of any tier except the disk. Throws OutOfMemory.
  [[nodiscard]] virtual runtime::Arena make_arena(runtime::Tier tier, std::int64_t bytes) const = 0;
  /// `parts` come without those of the host, which this adds.
  [[nodiscard]] virtual std::unique_ptr<runtime::Executor> make_executor(
      runtime::ExecutorParts parts) = 0;

  /// The communicator of the hosts' side: for agreement, and for collectives between steps.
  [[nodiscard]] comm::Communicator& host_communicator() const { return host_communicator_; }
  /// The communicator for the Programs' collectives.
  [[nodiscard]] comm::Communicator& program_communicator() const { return program_communicator_; }
  /// The host's threads, whether Programs run on the CPU or on a device.
  [[nodiscard]] kernels::ThreadPool& pool() { return host_.pool(); }

 protected:
  /// Throws InvalidArgument for `threads` below 1.
  ExecutionSite(comm::Communicator& host, comm::Communicator& of_programs, int threads);

  kernels::CpuDevice host_;
  kernels::CpuStream host_stream_;

 private:
  comm::Communicator& host_communicator_;
  comm::Communicator& program_communicator_;
};

/// The CPU as the device: its arena is host memory, its queues are threads.
class CpuSite final : public ExecutionSite {
 public:
  explicit CpuSite(comm::Communicator& communicator, int threads = 1)
      : ExecutionSite(communicator, communicator, threads) {}
  [[nodiscard]] runtime::Arena make_arena(runtime::Tier tier, std::int64_t bytes) const override;
  [[nodiscard]] std::unique_ptr<runtime::Executor> make_executor(
      runtime::ExecutorParts parts) override;

 private:
  comm::HostStream communication_stream_;
};

struct DeviceSiteOptions {
  int threads = 1;  ///< threads of the host
  runtime::Recordings recordings = runtime::Recordings::on;
  /// Report of checking every instruction against the CPU (runtime/execute/lockstep.h); null: none
  /// is checked.
  runtime::LockstepReport* lockstep = nullptr;
};

class DeviceSite final : public ExecutionSite {
 public:
  /// `of_programs` works on memory of `device` (comm/device_factory.h).
  DeviceSite(comm::Communicator& host, kernels::Device& device, comm::Communicator& of_programs,
             const DeviceSiteOptions& options = {})
      : ExecutionSite(host, of_programs, options.threads), device_(device), options_(options) {}
  [[nodiscard]] runtime::Arena make_arena(runtime::Tier tier, std::int64_t bytes) const override;
  [[nodiscard]] std::unique_ptr<runtime::Executor> make_executor(
      runtime::ExecutorParts parts) override;

 private:
  kernels::Device& device_;
  DeviceSiteOptions options_;
};

}  // namespace strata::train
