#include "train/engine/execution_site.h"

#include <fmt/core.h>
#include <utility>

#include "core/error.h"

namespace strata::train {
namespace {

int checked(int threads) {
  if (threads < 1)
    throw InvalidArgument(
        fmt::format("ExecutionSite: {} threads of the host, expected 1 or more", threads));
  return threads;
}

}  // namespace

runtime::Arena make_shared_arena(const comm::Communicator& communicator, const std::string& name,
                                 std::int64_t bytes) {
  const bool maps = communicator.backend() == "shm" || communicator.backend() == "hosts";
  return {name, bytes,
          maps ? runtime::ArenaKind::shared_memory : runtime::ArenaKind::private_memory};
}

ExecutionSite::ExecutionSite(comm::Communicator& host, comm::Communicator& of_programs, int threads)
    : host_(checked(threads)),
      host_stream_(host_),
      host_communicator_(host),
      program_communicator_(of_programs) {}

runtime::Arena CpuSite::make_arena(runtime::Tier tier, std::int64_t bytes) const {
  const std::string name(name_of(tier));
  if (tier == runtime::Tier::device) return make_shared_arena(host_communicator(), name, bytes);
  return {name, bytes, runtime::ArenaKind::private_memory};
}

std::unique_ptr<runtime::Executor> CpuSite::make_executor(runtime::ExecutorParts parts) {
  return runtime::make_cpu_executor(std::move(parts), kernels::cpu_kernels(), host_stream_,
                                    communication_stream_);
}

runtime::Arena DeviceSite::make_arena(runtime::Tier tier, std::int64_t bytes) const {
  if (tier == runtime::Tier::device) return {device_, kernels::MemoryKind::device, bytes};
  if (tier == runtime::Tier::pinned) return {device_, kernels::MemoryKind::pinned, bytes};
  return {std::string(name_of(tier)), bytes, runtime::ArenaKind::private_memory};
}

std::unique_ptr<runtime::Executor> DeviceSite::make_executor(runtime::ExecutorParts parts) {
  parts.host_stream = &host_stream_;
  parts.host_kernels = &kernels::cpu_kernels();
  if (options_.lockstep != nullptr)
    return runtime::make_lockstep_executor(std::move(parts), device_, host_, *options_.lockstep);
  return runtime::make_stream_executor(std::move(parts), device_, options_.recordings);
}

}  // namespace strata::train
