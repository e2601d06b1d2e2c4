#include "runtime/simulator/foreseen_times.h"

#include <algorithm>
#include <utility>

#include "runtime/simulator/host_resources.h"

namespace strata::runtime {
namespace {

using machine::Demand;
using machine::Figure;
using machine::Machine;
using machine::Resource;

/// Collects what one instruction asks of the resources while it runs alone.
class Shares {
 public:
  Shares(InstructionWork& work, double ranks)
      : work_(work), seconds_(static_cast<double>(work.alone_ns) * 1e-9), ranks_(ranks) {}

  [[nodiscard]] double seconds() const { return seconds_; }
  /// `share` of what one rank has.
  void take_share(HostResource resource, double share) {
    if (static_cast<int>(resource) < kFirstOfRank) share /= ranks_;
    if (share > 0) work_.shares.push_back({static_cast<int>(resource), std::min(share, 1.0)});
  }
  /// `amount` in all, of which one rank can have `rate` per second; 0: nobody knows.
  void take(HostResource resource, double amount, double rate) {
    if (rate > 0) take_share(resource, amount / seconds_ / rate);
  }
  /// The same of one direction, and of what both directions share: at once they move `both_ways`
  /// together.
  void take(HostResource direction, HostResource both, double bytes, double rate, double other_rate,
            Figure both_ways) {
    take(direction, bytes, rate);
    if (both_ways.known()) take(both, bytes * (rate + other_rate) / (2 * both_ways), rate);
  }

 private:
  InstructionWork& work_;
  double seconds_, ranks_;
};

/// Rate of the device's memory that its operations reach.
double device_memory_rate(const machine::Device& device) {
  return reached(device.bytes_per_second, device.memory_efficiency);
}

/// Returns the link with the rates that copies reach.
machine::Link reached_link(machine::Link link) {
  for (Figure* rate : {&link.to_device, &link.to_host, &link.both_ways})
    rate->value = reached(*rate, link.efficiency);
  return link;
}

/// Collectives pass bytes along a ring that enters and leaves each host once, as NCCL's do: of what
/// the ranks of a host send, one rank's part goes to another host, over all of its adapters.
void take_network(const Machine& machine, double sent_bytes, Shares& shares) {
  if (machine.hosts == 1) return;
  const double bytes = sent_bytes / machine.devices;
  const double rate =
      reached(machine.network_rate, machine.collective_efficiency) / machine.devices;
  shares.take(HostResource::nic_out, bytes, rate);
  shares.take(HostResource::nic_in, bytes, rate);
}

/// One drive serves either direction, so that both at once reach no more than one alone, but for
/// what was measured.
void take_disk(const Machine& machine, const Demand& demand, Shares& shares) {
  const machine::Disk& disk = machine.disk;
  const bool reads = demand.resource == Resource::disk_read;
  const double rate = reads ? disk.read_rate : disk.write_rate;
  const double other = reads ? disk.write_rate : disk.read_rate;
  const Figure both =
      disk.mixed_rate.known() ? disk.mixed_rate : machine::assumed((rate + other) / 2);
  shares.take(reads ? HostResource::disk_read : HostResource::disk_write, HostResource::disk,
              static_cast<double>(demand.moved_bytes), rate, other, both);
}

/// Ranks of one host copy all the time; on a network a core copies operands, and then the thread
/// sleeps.
double copying_part(const Machine& machine, const Demand& demand, double seconds) {
  if (machine.hosts == 1) return 1;
  const double rate_of_core =
      device_memory_rate(machine.device) / std::max(1, machine.device.capabilities.workers);
  return rate_of_core > 0 ? std::min(1.0, demand.bytes / rate_of_core / seconds) : 1;
}

void take_on_cpu(const Machine& machine, const Demand& demand, Shares& shares) {
  const double memory = std::max(machine.memory.bytes_per_second.value,  // one and the same
                                 device_memory_rate(machine.device));
  const auto moved = static_cast<double>(demand.moved_bytes);
  const double one_core = 1 / machine.processor.cores;
  const double computing = std::max(1, machine.device.capabilities.workers) * one_core;
  switch (demand.resource) {
    case Resource::device:
    case Resource::host:
      shares.take_share(HostResource::cores, computing);
      return shares.take(HostResource::host_memory, demand.bytes, memory);
    case Resource::disk_read:
    case Resource::disk_write:
      shares.take_share(HostResource::cores, 0.2 * one_core);
      take_disk(machine, demand, shares);
      return shares.take(HostResource::host_memory, moved, memory);
    case Resource::upload:
    case Resource::download:
      shares.take_share(HostResource::cores, one_core);
      return shares.take(HostResource::host_memory, 2 * moved, memory);
    case Resource::peers:
      shares.take_share(HostResource::cores,
                        one_core * copying_part(machine, demand, shares.seconds()));
      shares.take(HostResource::host_memory, demand.bytes, memory);
      return take_network(machine, moved, shares);
  }
}

void take_beside_device(const Machine& machine, const Demand& demand, Shares& shares) {
  const double device = device_memory_rate(machine.device), host = machine.memory.bytes_per_second;
  const machine::Link link = reached_link(machine.link);
  const auto moved = static_cast<double>(demand.moved_bytes);
  switch (demand.resource) {
    case Resource::device:
      return shares.take(HostResource::device_memory, demand.bytes, device);
    case Resource::host:
      shares.take_share(HostResource::cores, 1);
      return shares.take(HostResource::host_memory, demand.bytes, host);
    case Resource::disk_read:
    case Resource::disk_write:
      take_disk(machine, demand, shares);
      return shares.take(HostResource::host_memory, moved, host);
    case Resource::upload:
      shares.take(HostResource::link_up, HostResource::link, moved, link.to_device, link.to_host,
                  link.both_ways);
      break;
    case Resource::download:
      shares.take(HostResource::link_down, HostResource::link, moved, link.to_host, link.to_device,
                  link.both_ways);
      break;
    case Resource::peers:
      shares.take(HostResource::device_memory, demand.bytes, device);
      return take_network(machine, moved, shares);
  }
  shares.take(HostResource::host_memory, moved, host);
  shares.take(HostResource::device_memory, moved, device);
}

}  // namespace

ForeseenTimes::ForeseenTimes(machine::Machine machine, int ranks_of_host)
    : machine_(std::move(machine)), ranks_(ranks_of_host) {}

InstructionWork ForeseenTimes::work_of(const Program& program, int instruction) const {
  const Demand& demand = program.instructions[static_cast<std::size_t>(instruction)].demand;
  InstructionWork work{machine::foreseen_ns(machine_, demand), {}};
  Shares shares(work, ranks_);
  if (machine_.host_is_device())
    take_on_cpu(machine_, demand, shares);
  else
    take_beside_device(machine_, demand, shares);
  return work;
}

}  // namespace strata::runtime
