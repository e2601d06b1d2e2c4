// The Machine: what cores, memories, devices, links, disks and hosts a run has, and how fast they
// are. A plain value: planning reads it and nothing else, so that it needs no device. Read from a
// file (hardware_file.h, docs/formats/hardware.md), or put together from what was found and
// measured here. No result depends on it, but for the scratch that its capabilities ask for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "kernels/device/capabilities.h"
#include "machine/figure.h"
#include "machine/numa.h"

namespace strata::machine {

/// The processors of one host, as one.
struct Processor {
  std::string name;            ///< as it calls itself; may be empty
  Figure cores{1};             ///< that a run's threads may use
  Figure vector_bits{512};     ///< of the widest instructions for fp32
  std::vector<NumaNode> numa;  ///< with memory of their own; empty: not known, or one
  bool operator==(const Processor&) const = default;
};

/// The memory of one host.
struct HostMemory {
  Figure bytes;             ///< of all of it; 0: not known
  Figure allowed_bytes;     ///< that the tightest control group grants; 0: there is no limit
  Figure locked_bytes;      ///< that a user may lock (RLIMIT_MEMLOCK); 0: there is no limit
  Figure bytes_per_second;  ///< read plus written by updates of optimizer state
  bool operator==(const HostMemory&) const = default;
};

/// What computes: one GPU, or the CPU that plays the device. All devices of a machine are alike.
struct Device {
  std::vector<std::string> names;  ///< as the driver spells them; all name equal devices
  kernels::DeviceCapabilities capabilities;
  Figure memory_bytes;    ///< 0: not known, or the host's
  Figure reserved_bytes;  ///< of them taken by driver, kernels and libraries
  /// Dense matrix products, FLOP/s; 0: not known, or the type is not offered. fp32 without TF32.
  Figure fp32_flops, bf16_flops, fp8_flops;
  Figure product_efficiency{1};  ///< share of these that the products of a step reach
  Figure bytes_per_second;       ///< of its memory, read plus written
  bool operator==(const Device&) const = default;

  /// Peak of products of `type`; 0 where it is not known.
  [[nodiscard]] Figure flops(DType type) const;
};

/// Between a host and each of its devices, through pinned memory.
struct Link {
  Figure to_device, to_host;  ///< bytes per second
  Figure both_ways;           ///< at once, both together; 0: not known
  bool operator==(const Link&) const = default;
};

/// The drives for offloaded tensors of one host, striped.
struct Disk {
  Figure bytes;                          ///< of room; 0: not known
  Figure read_rate, write_rate;          ///< bytes per second
  Figure mixed_rate;                     ///< both at once, both together; 0: not known
  std::int64_t request_bytes = 1 << 20;  ///< of one request to one drive
  int depth = 16;                        ///< requests under way at one drive
  bool operator==(const Disk&) const = default;
};

struct Machine {
  std::string name;         ///< of its file: "8xh100"; empty: this machine
  std::string description;  ///< one line for people
  int hosts = 1;            ///< all alike
  int devices = 1;          ///< of each host
  Processor processor;
  HostMemory memory;
  Device device;
  Link link;
  Figure peer_rate;     ///< bytes per second that a collective moves on one host, at one rank
  Figure network_rate;  ///< and each way between hosts, of one host; 0: not known
  Disk disk;
  Figure instruction_seconds{2e-6};  ///< that every instruction takes besides

  bool operator==(const Machine&) const = default;
  /// Whether the CPU plays the device, so that transfers and updates take some of its cores.
  [[nodiscard]] bool host_is_device() const {
    return device.capabilities.backend == kernels::DeviceCapabilities::Backend::cpu;
  }
};

/// A CPU as one rank with `threads` threads has it, beside other ranks: what is typical.
Machine cpu_machine(int threads, int vector_bits = 512);

/// A CPU, or a GPU of which nothing more is known, as one rank has it: what is typical.
Machine typical_machine(const kernels::DeviceCapabilities& capabilities, int vector_bits = 512);

/// The machine as one of `ranks` ranks of a host has it: they use its drives, its memory and what
/// leads to other hosts at the same times, and share the cores of a CPU that plays the device.
Machine share_of_rank(Machine machine, int ranks);
Disk share_of_rank(Disk disk, int ranks);

/// A machine with the GPU that its driver calls `driver_name`, as one of `ranks` ranks of a host
/// has it: what hardware_table.h knows of it, else what is typical.
Machine gpu_machine(const std::string& driver_name, const kernels::DeviceCapabilities& capabilities,
                    int ranks = 1);

}  // namespace strata::machine
