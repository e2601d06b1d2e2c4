#include "train/run/plan_only.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/format_bytes.h"
#include "kernels/cuda/open_device.h"
#include "machine/machine.h"
#include "plan/foresee.h"
#include "train/engine/build_programs.h"
#include "train/report/report_directory.h"
#include "train/run/host_limits.h"
#include "train/run/memory_advice.h"
#include "train/run/plan_report.h"

namespace strata::train {
namespace {

bool plans_for_cuda(const RunRequest& request) {
  const TrainOptions& options = request.config.options;
  if (request.hardware) return !request.hardware->host_is_device();
  if (options.device != DeviceChoice::automatic) return options.device == DeviceChoice::cuda;
  return options.offload.device_memory_bytes != kUnlimitedMemory ||
         cuda::count_devices().devices > 0;
}

/// The machine of a request, as one of the ranks has it.
machine::Machine machine_of(const RunRequest& request, bool on_cuda) {
  if (request.hardware) return share_of_rank(*request.hardware, request.context.local_world);
  if (!on_cuda)
    return machine::cpu_machine(threads_per_rank(request.config.options, request.context));
  kernels::DeviceCapabilities capabilities;  // scratch that fits all architectures
  capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  capabilities.cudnn = true;
  return machine::typical_machine(capabilities);
}

/// Free memory of the host to plan for; 0: unknown.
std::int64_t free_host_bytes(const RunRequest& request) {
  if (!request.hardware) return machine::available_host_bytes();
  const machine::HostMemory& memory = request.hardware->memory;
  if (!memory.allowed_bytes.known()) return memory.bytes.whole();
  if (!memory.bytes.known()) return memory.allowed_bytes.whole();
  return std::min(memory.allowed_bytes.whole(), memory.bytes.whole());
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

/// Ranks of one host read one another's memory; ranks of several hosts, and devices, send messages.
comm::Exchange exchange_of(const RunRequest& request, bool on_cuda) {
  const RankContext& context = request.context;
  if (context.world == 1) return on_cuda ? comm::Exchange::own_rounding : comm::Exchange::none;
  return on_cuda || context.local_world < context.world ? comm::Exchange::messages
                                                        : comm::Exchange::peer_memory;
}

/// Says which memory is lacking; empty if all fits.
std::string lacking_memory(const RunRequest& request, const compile::Compiled& found,
                           const MachineMemory& memory) {
  if (!found.fit.fits()) return lacking_memory(found.fit, programs_of(request));
  const MemoryNeeds needs = plan::memory_needs(found.programs);
  if (memory.holds(needs)) return "";
  if (memory.device_bytes && needs.device > *memory.device_bytes)
    return "this plan needs " + format_bytes(needs.device) + " on the device, which has " +
           format_bytes(*memory.device_bytes);
  return "this plan needs " + describe(needs, memory) + ", and " + format_bytes(memory.host_bytes) +
         " are " +
         (request.hardware ? "what the host of --hardware has"
                           : "free on this machine (--host-memory SIZE and --hardware NAME plan "
                             "for another one)");
}

/// Throws unless the drives of the machine to plan for hold what its ranks put there.
void require_drive(const RunRequest& request, const compile::StepPrograms& set) {
  if (!request.hardware || !request.hardware->disk.bytes.known()) return;
  const std::int64_t needed = set.disk_bytes() * request.context.local_world;
  if (needed <= request.hardware->disk.bytes.whole()) return;
  throw HostError("this plan needs " + format_bytes(needed) +
                  " on the drives of a host, and the disk of --hardware has " +
                  format_bytes(request.hardware->disk.bytes));
}

compile::Compiled find_plan(const RunRequest& request, const machine::Machine& machine,
                            const comm::Seat& seat, const MachineMemory& memory) {
  const ProgramRequest programs = programs_of(request);
  return plan_programs(
      programs, seat, machine, savings_of(programs.options), [&](const auto& tried) {
        return tried.fit.fits() && memory.holds(plan::memory_needs(tried.programs));
      });
}

std::string describe_device(const RunRequest& request, bool on_cuda) {
  if (request.hardware)
    return request.hardware->description + ", planned for from " +
           (request.hardware->name.empty() ? "its file" : request.hardware->name);
  if (!on_cuda) return "CPU";
  const std::int64_t bytes = request.config.options.offload.device_memory_bytes;
  return "a GPU" +
         (bytes == kUnlimitedMemory ? std::string(" of any size") : " of " + format_bytes(bytes)) +
         ", planned for without looking at one";
}

/// What is foreseen, to the directory of --memory-report.
void report_plan(const RunRequest& request, const machine::Machine& machine, const comm::Seat& seat,
                 const compile::StepPrograms& set, const std::string& device) {
  const ProgramRequest programs = programs_of(request);
  const std::string& directory = programs.options.memory_report;
  write_report(directory,
               make_report({programs, request.config.fields, set, machine, seat, device},
                           foresee_step(set, machine)),
               nullptr);
}

}  // namespace

ProgramRequest programs_of(const RunRequest& request) {
  const TrainOptions& options = request.config.options;
  ProgramRequest programs{request.model, options};
  programs.evaluate = !options.eval_data.empty() || evaluates_during(options);
  programs.local_ranks = request.context.local_world;
  return programs;
}

PlanningSite planning_site(const RunRequest& request) {
  const bool on_cuda = plans_for_cuda(request);
  return {machine_of(request, on_cuda), memory_of(request, on_cuda),
          comm::Seat{0, request.context.world, exchange_of(request, on_cuda)},
          describe_device(request, on_cuda)};
}

bool plans_only(const TrainOptions& options, bool checks) {
  return options.steps == 0 && (checks || options.print_plan || options.print_program);
}

void print_plan_only(const RunRequest& request, const RunListeners& listeners) {
  const TrainOptions& options = request.config.options;
  const auto [machine, memory, seat, device] = planning_site(request);
  require_report_directory(options.memory_report);
  if (!options.target.memory.empty())
    listeners.note(
        "--target-memory makes settings for runs; this plan is that of the settings as they are, "
        "and "
        "the program plan, with the same flags, that of the target");
  const compile::Compiled found = find_plan(request, machine, seat, memory);
  if (const std::string lacking = lacking_memory(request, found, memory); !lacking.empty())
    throw OutOfMemory(
        lacking + "; " +
        memory_advice(programs_of(request), {.seat = seat, .machine = machine, .memory = memory}) +
        (!machine.host_is_device() || request.hardware ? " (device: " + device + ")" : ""));
  const compile::StepPrograms& set = found.programs;
  require_drive(request, set);
  print_plan(request.config, options, set,
             {.ranks = request.context.world,
              .transport = "planned only",
              .device = device,
              .foreseen_seconds = plan::foresee(set, machine).step_seconds,
              .rates = machine.device.fp32_flops.source},
             listeners);
  write_plan(options, set.settings.plan);
  listeners.print("this plan fits: it needs " + describe(plan::memory_needs(set), memory));
  if (options.memory_report.empty()) return;
  report_plan(request, machine, seat, set, device);
  listeners.print("memory report: " + report_files(options.memory_report).back());
}

}  // namespace strata::train
