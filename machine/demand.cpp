#include "machine/demand.h"

#include <algorithm>
#include <cmath>

namespace strata::machine {
namespace {

/// Cap on the time of one instruction (runtime/schedule/schedule_index.cpp); a machine that needs
/// longer is not realistic.
constexpr double kLongestSeconds = 3600;
constexpr std::int64_t kLongestNs = std::int64_t{3600} * 1'000'000'000;

double seconds_at(double work, double rate) { return rate > 0 ? work / rate : 0; }

/// Returns the seconds of `work` at the peak `rate`, or 0 if `rate` is only assumed.
double least_at(double work, Figure rate) {
  return rate.source == Source::assumed ? 0 : seconds_at(work, rate);
}

/// True for attention and its backward pass (kernels/ops/attention.h).
bool is_attention(std::string_view operation) { return operation.starts_with("attention"); }

/// FLOP/s that the operation reaches. If the vendor names no rate for a type, assume that the
/// device multiplies it in fp32.
double arithmetic_rate(const Device& device, const Demand& demand) {
  const Figure peak = device.flops(demand.type);
  const bool attends = is_attention(demand.operation) && device.attention_efficiency.known();
  return (peak.known() ? peak : device.fp32_flops) *
         (attends ? device.attention_efficiency : device.product_efficiency);
}

double memory_rate(const Device& device) {
  return reached(device.bytes_per_second, device.memory_efficiency);
}

/// True if the collective is a copy in the device's memory, since its rank is alone.
bool is_copied(const Machine& machine, const Demand& demand) {
  return demand.moved_bytes == 0 && !machine.host_is_device();
}

/// Seconds in which the first byte of a collective goes round: its ring passes n - 1 of the n links
/// between ranks, those between hosts once for each host but one (NCCL counts hops of rings so,
/// too: src/graph/tuning.cc).
double latency_of(const Machine& machine, int ranks) {
  const int between_hosts = std::min(machine.hosts, ranks) - 1;
  return between_hosts * machine.network_latency +
         (ranks - 1 - between_hosts) * machine.peer_latency;
}

/// Reads and writes of the operands are part of the transfer.
double collective_seconds(const Machine& machine, const Demand& demand) {
  if (is_copied(machine, demand)) return seconds_at(demand.bytes, memory_rate(machine.device));
  const double rate = reached(machine.peer_rate, machine.collective_efficiency);
  // Ranks on the processor of one host read one another's operands.
  if (machine.host_is_device() && machine.hosts == 1) return seconds_at(demand.bytes, rate);
  return latency_of(machine, demand.ranks) +
         seconds_at(static_cast<double>(demand.moved_bytes), rate);
}

/// The peak rate of what moves bytes.
Figure moving_peak(const Machine& machine, Resource resource) {
  switch (resource) {
    case Resource::upload:
      return machine.link.to_device;
    case Resource::download:
      return machine.link.to_host;
    case Resource::disk_read:
      return machine.disk.read_rate;
    case Resource::disk_write:
      return machine.disk.write_rate;
    default:
      return machine.peer_rate;
  }
}

/// The rate of copies over the link, or of a disk's transfers.
double copy_rate(const Machine& machine, Resource resource) {
  const Figure peak = moving_peak(machine, resource);
  const bool crosses_link = resource == Resource::upload || resource == Resource::download;
  return crosses_link ? reached(peak, machine.link.efficiency) : peak.value;
}

}  // namespace

std::int64_t foreseen_ns(const Machine& machine, const Demand& demand) {
  const std::int64_t guess = guessed_ns(machine, demand);
  if (demand.signature == 0 || machine.times.empty()) return guess;
  if (const auto measured = machine.times.find(demand.signature)) return *measured;
  const double ns = machine.times.foreseen_ns(demand.operation, demand.resource, demand.type,
                                              work_of(demand), static_cast<double>(guess));
  return std::clamp<std::int64_t>(std::llround(std::min(ns, kLongestSeconds * 1e9)), 1, kLongestNs);
}

Work work_of(const Demand& demand) {
  const bool moves = demand.resource != Resource::device && demand.resource != Resource::host;
  const bool sends = moves && demand.moved_bytes > 0;
  return {demand.flops, sends ? static_cast<double>(demand.moved_bytes) : demand.bytes};
}

std::int64_t guessed_ns(const Machine& machine, const Demand& demand) {
  double seconds = 0;
  switch (demand.resource) {
    case Resource::device:
      seconds = std::max(seconds_at(demand.flops, arithmetic_rate(machine.device, demand)),
                         seconds_at(demand.bytes, memory_rate(machine.device)));
      break;
    case Resource::peers:
      seconds = collective_seconds(machine, demand);
      break;
    case Resource::host:
      seconds = seconds_at(demand.bytes, machine.memory.bytes_per_second);
      break;
    default:
      seconds =
          seconds_at(static_cast<double>(demand.moved_bytes), copy_rate(machine, demand.resource));
  }
  return std::clamp<std::int64_t>(std::llround(machine.instruction_seconds * 1e9) +
                                      std::llround(std::min(seconds, kLongestSeconds) * 1e9),
                                  1, kLongestNs);
}

double least_seconds(const Machine& machine, const Demand& demand) {
  const Device& device = machine.device;
  const double in_memory = least_at(demand.bytes, device.bytes_per_second);
  const auto moved = static_cast<double>(demand.moved_bytes);
  switch (demand.resource) {
    case Resource::device:
      return std::max(in_memory, least_at(demand.flops, device.flops(demand.type)));
    case Resource::peers:
      if (demand.moved_bytes == 0) return in_memory;
      break;
    case Resource::host:
      return machine.host_is_device() ? in_memory
                                      : seconds_at(demand.bytes, machine.memory.bytes_per_second);
    case Resource::upload:
    case Resource::download:
      // Both are copies in host memory, which are read and written.
      if (machine.host_is_device()) return least_at(2 * moved, device.bytes_per_second);
      break;
    default:
      break;
  }
  return seconds_at(moved, moving_peak(machine, demand.resource));
}

}  // namespace strata::machine
