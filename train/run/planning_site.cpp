#include "train/run/planning_site.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/format_bytes.h"
#include "kernels/cuda/open_device.h"
#include "train/run/host_limits.h"

namespace strata::train {
namespace {

bool plans_for_cuda(const RunRequest& request) {
  const TrainOptions& options = request.config.options;
  if (request.hardware) return !request.hardware->host_is_device();
  if (options.device != DeviceChoice::automatic) return options.device == DeviceChoice::cuda;
  return options.offload.device_memory_bytes != kUnlimitedMemory ||
         cuda::count_devices().devices > 0;
}

/// Gives a CPU that computes the threads of --threads; 0: it has one for each core. Fewer threads
/// than cores are slower, more are no faster.
machine::Machine with_threads(machine::Machine machine, std::int64_t threads) {
  if (threads == 0 || !machine.host_is_device()) return machine;
  if (static_cast<double>(threads) < machine.processor.cores)
    set_cores(machine, static_cast<double>(threads));
  machine.device.capabilities.workers = static_cast<int>(threads);
  return machine;
}

/// The machine of a request, as one of the ranks has it.
machine::Machine machine_of(const RunRequest& request, bool on_cuda) {
  if (request.hardware)
    return with_threads(share_of_rank(*request.hardware, request.context.local_world),
                        request.config.options.threads);
  if (!on_cuda)
    return machine::cpu_machine(threads_per_rank(request.config.options, request.context));
  kernels::DeviceCapabilities capabilities;  // scratch that fits all architectures
  capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  capabilities.cudnn = true;
  return machine::typical_machine(capabilities);
}

/// The memory to plan for; the plan itself obeys --device-memory and --host-memory.
MachineMemory memory_of(const RunRequest& request, bool on_cuda) {
  const OffloadOptions& offload = request.config.options.offload;
  MachineMemory memory;
  memory.local_world = request.context.local_world;
  if (on_cuda) memory.device_bytes = offload.device_memory_bytes;
  if (offload.host_memory_bytes == kUnlimitedMemory || request.hardware)
    memory.host_bytes = free_host_bytes(request);
  if (const std::int64_t limit = host_limit_on_cpu(offload); !on_cuda && limit > 0)
    memory.host_bytes = memory.host_bytes == 0 ? limit : std::min(memory.host_bytes, limit);
  return memory;
}

/// Returns rank 0's seat. Ranks of one host read one another's memory, and so within each host
/// those that mlaunch started on several; others, and devices, send messages. Over several hosts
/// sums are made within each first, unless NCCL makes all of them.
comm::Seat seat_of(const RunRequest& request, bool on_cuda) {
  const RankContext& context = request.context;
  const auto seat = [&](comm::Exchange exchange) { return comm::Seat{0, context.world, exchange}; };
  if (context.world == 1)
    return seat(on_cuda ? comm::Exchange::own_rounding : comm::Exchange::none);
  if (on_cuda && request.config.options.reduction == comm::Reduction::native)
    return seat(comm::Exchange::native_messages);
  if (!on_cuda && context.local_world == context.world) return seat(comm::Exchange::peer_memory);
  if (context.first_ranks.size() < 2) return seat(comm::Exchange::messages);
  return {0, context.world, on_cuda ? comm::Exchange::host_messages : comm::Exchange::hosts,
          context.first_ranks};
}

std::string describe_device(const RunRequest& request, bool on_cuda) {
  if (request.hardware)
    return request.hardware->description + ", planned for from " +
           (request.hardware->name.empty() ? "its file" : request.hardware->name);
  if (!on_cuda) return "CPU";
  const std::int64_t bytes = request.config.options.offload.device_memory_bytes;
  return "a GPU" +
         (bytes == kUnlimitedMemory ? std::string(" of any size") : " of " + format_bytes(bytes)) +
         ", planned for without looking at one; --hardware NAME, or FILE of doctor "
         "--write-hardware, says more";
}

/// Spreads the ranks over the hosts of --hardware, whose devices are budgeted for.
void place_on_hardware(machine::Machine& hardware, RunRequest& request) {
  RankContext& context = request.context;
  const int world = context.world;
  if (const int devices = hardware.hosts * hardware.devices;
      world > devices && !hardware.host_is_device())
    throw InvalidArgument(fmt::format(
        "{} ranks: the machine of --hardware has {} {}; --hardware {},devices={} has more "
        "on a host, and {},hosts=N,network=RATE has more hosts",
        world, devices, devices == 1 ? "device" : "devices", hardware.name, world, hardware.name));
  const int spread = (world + hardware.hosts - 1) / hardware.hosts;
  context.local_world = std::max(std::min(world, hardware.devices), spread);
  hardware.hosts = (world + context.local_world - 1) / context.local_world;  // used ones
  context.first_ranks.clear();
  for (int host = 0; host < hardware.hosts; ++host)
    context.first_ranks.push_back(host * context.local_world);
  std::int64_t& budget = request.config.options.offload.device_memory_bytes;
  if (hardware.host_is_device()) return;
  budget = std::min(budget,
                    hardware.device.memory_bytes.whole() - hardware.device.reserved_bytes.whole());
}

}  // namespace

std::int64_t free_host_bytes(const RunRequest& request) {
  if (!request.hardware) return machine::available_host_bytes();
  const machine::HostMemory& memory = request.hardware->memory;
  if (!memory.allowed_bytes.known()) return memory.bytes.whole();
  if (!memory.bytes.known()) return memory.allowed_bytes.whole();
  return std::min(memory.allowed_bytes.whole(), memory.bytes.whole());
}

ProgramRequest programs_of(const RunRequest& request) {
  return programs_of(request, request.config.options);
}

ProgramRequest programs_of(const RunRequest& request, const TrainOptions& options) {
  ProgramRequest programs{request.model, options};
  programs.evaluate = !options.eval_data.empty() || evaluates_during(options);
  programs.local_ranks = request.context.planned_local_world();
  return programs;
}

PlanningSite planning_site(const RunRequest& request) {
  const bool on_cuda = plans_for_cuda(request);
  return {machine_of(request, on_cuda), memory_of(request, on_cuda), seat_of(request, on_cuda),
          describe_device(request, on_cuda)};
}

void assume_ranks(int world, RunRequest& request) {
  RankContext& context = request.context;
  if (world != context.world) {
    context.world = context.local_world = world;
    context.first_ranks.clear();
  }
  if (request.hardware) place_on_hardware(*request.hardware, request);
  comm::require_sums(seat_of(request, plans_for_cuda(request)));
}

}  // namespace strata::train
