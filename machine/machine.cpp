#include "machine/machine.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "machine/hardware_table.h"

namespace strata::machine {
namespace {

/// fp32 FLOP/s that steps reach per core and bit of vector width: 2e11 per core with AVX-512
/// (measured: 1.96e11), half of that with AVX2 (0.96e11), a quarter with SSE4.1 (0.45e11).
constexpr double kFlopsPerVectorBit = 2e11 / 512;

}  // namespace

std::string_view name_of(Source source) {
  switch (source) {
    case Source::assumed:
      return "assumed";
    case Source::given:
      return "given";
    case Source::data_sheet:
      return "data sheet";
    case Source::measured:
      break;
  }
  return "measured";
}

Figure Device::flops(DType type) const {
  switch (type) {
    case DType::f32:
      return fp32_flops;
    case DType::bf16:
    case DType::f16:
      return bf16_flops;
    default:
      return {};
  }
}

Machine cpu_machine(int threads, int vector_bits) {
  Machine machine;
  machine.processor.cores.value = threads;
  machine.processor.vector_bits.value = vector_bits;
  machine.memory.bytes_per_second = assumed(15e9);
  Device& device = machine.device;
  device.capabilities.workers = threads;
  // Rates while other ranks run, too. If they were too low, schedules would put updates long before
  // their use, and the computation would wait for the records.
  device.fp32_flops = device.bf16_flops = assumed(kFlopsPerVectorBit * vector_bits * threads);
  device.bytes_per_second = assumed(8e9 * threads);
  machine.link = {.to_device = assumed(8e9), .to_host = assumed(8e9), .both_ways = {}};
  machine.peer_rate = assumed(2e10);
  machine.disk.read_rate = assumed(1.5e9);
  machine.disk.write_rate = assumed(1.2e9);
  return machine;
}

Machine typical_machine(const kernels::DeviceCapabilities& capabilities, int vector_bits) {
  if (capabilities.backend == kernels::DeviceCapabilities::Backend::cpu)
    return cpu_machine(capabilities.workers, vector_bits);
  Machine machine;
  machine.device.capabilities = capabilities;
  machine.memory.bytes_per_second = assumed(6e10);
  machine.device.fp32_flops = machine.device.bf16_flops = assumed(2e14);
  machine.device.bytes_per_second = assumed(1e12);
  machine.link = {.to_device = assumed(2.2e10), .to_host = assumed(2.2e10), .both_ways = {}};
  machine.peer_rate = assumed(2e10);
  machine.disk.read_rate = assumed(5e9);
  machine.disk.write_rate = assumed(4e9);
  return machine;
}

Disk share_of_rank(Disk disk, int ranks) {
  for (Figure* rate : {&disk.read_rate, &disk.write_rate, &disk.mixed_rate}) rate->value /= ranks;
  return disk;
}

void set_cores(Machine& machine, double cores) {
  const double before = machine.processor.cores;
  machine.processor.cores.value = cores;
  if (!machine.host_is_device()) return;
  Device& device = machine.device;
  device.capabilities.workers = static_cast<int>(cores);
  for (Figure* rate :
       {&device.fp32_flops, &device.bf16_flops, &device.fp8_flops, &device.bytes_per_second})
    rate->value *= cores / before;
}

Machine share_of_rank(Machine machine, int ranks) {
  if (machine.host_is_device())
    set_cores(machine, std::max(1.0, std::floor(machine.processor.cores / ranks)));
  machine.memory.bytes_per_second.value /= ranks;
  // A ring of ranks leaves each host once, over all of its adapters.
  if (machine.hosts > 1 && machine.network_rate.known())
    machine.peer_rate.value = std::min(machine.peer_rate.value, machine.network_rate.value);
  machine.disk = share_of_rank(machine.disk, ranks);
  return machine;
}

Machine gpu_machine(const std::string& driver_name, const kernels::DeviceCapabilities& capabilities,
                    int ranks) {
  const std::optional<Machine> known = find_hardware_of_device(driver_name, ranks);
  Machine machine = known ? share_of_rank(*known, ranks) : typical_machine(capabilities);
  machine.device.names = {driver_name};
  machine.device.capabilities = capabilities;
  return machine;
}

}  // namespace strata::machine
