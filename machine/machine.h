// The Machine: the cores, memories, devices, links, disks and hosts of a run, and how fast they
// are. It is a plain value from a file (hardware_file.h, docs/formats/hardware.md), or put together
// from what was found and measured here. Planning reads nothing else, so it needs no device. No
// result depends on it, except through the scratch that depends on its capabilities.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "kernels/device/capabilities.h"
#include "machine/figure.h"
#include "machine/numa.h"
#include "machine/operation_times.h"

namespace strata::machine {

/// All processors of one host together.
struct Processor {
  std::string name;            ///< name that the processor reports; may be empty
  Figure cores{1};             ///< cores that a run's threads may use
  Figure vector_bits{512};     ///< width of the widest fp32 instructions
  std::vector<NumaNode> numa;  ///< NUMA nodes; empty: one, or not known
  bool operator==(const Processor&) const = default;
};

/// The memory of one host.
struct HostMemory {
  Figure bytes;             ///< total; 0: not known
  Figure allowed_bytes;     ///< least limit of the control groups; 0: no limit
  Figure locked_bytes;      ///< limit of locked memory (RLIMIT_MEMLOCK); 0: no limit
  Figure bytes_per_second;  ///< rate of updates of optimizer state, read plus written
  bool operator==(const HostMemory&) const = default;
};

/// The device that computes: one GPU, or the CPU in its place. All devices of a machine are equal.
struct Device {
  std::vector<std::string> names;  ///< names that drivers give to this device
  kernels::DeviceCapabilities capabilities;
  Figure memory_bytes;    ///< 0: not known, or the host's memory
  Figure reserved_bytes;  ///< part of memory_bytes taken by driver, kernels and libraries
  /// Peak FLOP/s of dense products (fp32: without TF32); 0: not known, or the type is not offered.
  Figure fp32_flops, bf16_flops, fp8_flops;
  Figure product_efficiency{1};  ///< share of these peaks that a step's products reach
  Figure attention_efficiency;   ///< the same of attention; 0: not known, as products
  Figure bytes_per_second;       ///< peak rate of its memory, read plus written
  /// Share of that rate that element-wise operations, norms and updates reach; 0: all of it.
  Figure memory_efficiency;
  bool operator==(const Device&) const = default;

  /// Peak FLOP/s of products of `type`; 0 if it is not known.
  [[nodiscard]] Figure flops(DType type) const;
};

/// The link between a host and each of its devices, through pinned memory.
struct Link {
  Figure to_device, to_host;  ///< bytes per second
  Figure both_ways;           ///< sum of both directions at once; 0: not known
  Figure efficiency;          ///< share of these rates that copies reach; 0: all of it
  bool operator==(const Link&) const = default;
};

/// The drives of one host for offloaded tensors, striped.
struct Disk {
  Figure bytes;                          ///< space for them; 0: not known
  Figure tbw;                            ///< bytes that may be written in all; 0: not known
  Figure read_rate, write_rate;          ///< bytes per second
  Figure mixed_rate;                     ///< sum of reading and writing at once; 0: not known
  std::int64_t request_bytes = 1 << 20;  ///< size of one request to one drive
  int depth = 16;                        ///< requests in flight per drive
  bool operator==(const Disk&) const = default;
};

struct Machine {
  std::string name;         ///< name of its file: "8xh100"; empty: this machine
  std::string description;  ///< one line for people
  int hosts = 1;            ///< number of hosts, all equal
  int devices = 1;          ///< devices per host
  Processor processor;
  HostMemory memory;
  Device device;
  Link link;
  Figure peer_rate;     ///< bytes per second and rank of a collective within a host
  Figure network_rate;  ///< bytes per second and direction of one host's network; 0: not known
  Figure peer_latency, network_latency;  ///< seconds per hop of a collective's ring; 0: not counted
  Figure collective_efficiency;  ///< share of these rates that collectives reach; 0: all of it
  Disk disk;
  OperationTimes times;  ///< what was measured of instructions; not part of hardware files
  Figure instruction_seconds{2e-6};  ///< overhead of every instruction

  bool operator==(const Machine&) const = default;
  /// True if the CPU plays the device, so that transfers and updates take some of its cores.
  [[nodiscard]] bool host_is_device() const {
    return device.capabilities.backend == kernels::DeviceCapabilities::Backend::cpu;
  }
};

/// Typical rates of a CPU for one rank with `threads` threads, while other ranks run, too.
Machine cpu_machine(int threads, int vector_bits = 512);

/// Typical rates for one rank of a CPU, or of a GPU about which nothing more is known.
Machine typical_machine(const kernels::DeviceCapabilities& capabilities, int vector_bits = 512);

/// Sets the cores of a host; where they play the device, its rates change in proportion.
void set_cores(Machine& machine, double cores);

/// Returns one rank's share of a host with `ranks` ranks: they use drives, memory and network at
/// the same times, and divide the cores of a CPU that plays the device.
Machine share_of_rank(Machine machine, int ranks);
Disk share_of_rank(Disk disk, int ranks);

/// Returns one rank's share of a machine with the GPU that its driver calls `driver_name`, for
/// `ranks` ranks on a host: from hardware_table.h if it knows the GPU, else typical rates.
Machine gpu_machine(const std::string& driver_name, const kernels::DeviceCapabilities& capabilities,
                    int ranks = 1);

}  // namespace strata::machine
