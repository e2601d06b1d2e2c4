// Tests what an instruction takes of a host, on machines whose rates are round numbers.
#include "runtime/simulator/foreseen_times.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/simulator/host_resources.h"
#include "runtime/testing/hand_made.h"

namespace strata::runtime {
namespace {

using machine::Demand;
using machine::Machine;
using machine::Resource;

/// Shares by resource.
std::map<HostResource, double> shares_of(const Machine& machine, const Demand& demand,
                                         int ranks = 1) {
  Program program = hand_made("p", {hand_made(Queue::compute, "it")});
  program.instructions[0].demand = demand;
  std::map<HostResource, double> shares;
  const InstructionWork work = ForeseenTimes(machine, ranks).work_of(program, 0);
  EXPECT_EQ(work.alone_ns, machine::foreseen_ns(machine, demand));
  for (const ResourceShare& s : work.shares)
    shares[static_cast<HostResource>(s.resource)] += s.share;
  return shares;
}

void expect_near(const std::map<HostResource, double>& found,
                 const std::map<HostResource, double>& expected) {
  for (const HostResource r : kAllHostResources) {
    const auto of = [&](const auto& shares) { return shares.contains(r) ? shares.at(r) : 0.0; };
    EXPECT_NEAR(of(found), of(expected), 1e-3) << name_of(r);
  }
}

/// Two cores, 10 GB/s of memory, 1 GFLOP/s; drives of 1 and 0.5 GB/s.
Machine cpu() {
  Machine machine = machine::cpu_machine(2);
  machine.instruction_seconds.value = 0;
  machine.device.fp32_flops.value = 1e9;
  machine.device.bytes_per_second.value = machine.memory.bytes_per_second.value = 1e10;
  machine.link = {.to_device = {4e9}, .to_host = {4e9}, .both_ways = {}};
  machine.peer_rate.value = 5e9;
  machine.disk = {.read_rate = {1e9}, .write_rate = {5e8}};
  return machine;
}

constexpr std::int64_t kMoved = 100'000'000;

TEST(ForeseenTimes, OnACpuComputationTakesAllCoresAndWhatItMovesOfTheMemory) {
  // A second of arithmetic.
  expect_near(shares_of(cpu(), {.flops = 1e9, .bytes = 3e9}),
              {{HostResource::cores, 1}, {HostResource::host_memory, 0.3}});
  expect_near(shares_of(cpu(), {.resource = Resource::host, .bytes = 3e9}),
              {{HostResource::cores, 1}, {HostResource::host_memory, 1}});
}

TEST(ForeseenTimes, OnACpuAllElseTakesAPartOfACore) {
  expect_near(shares_of(cpu(), {.resource = Resource::upload, .moved_bytes = kMoved}),
              {{HostResource::cores, 0.5}, {HostResource::host_memory, 0.8}});
  expect_near(shares_of(cpu(), {.resource = Resource::peers, .bytes = 1e9, .moved_bytes = kMoved}),
              {{HostResource::cores, 0.5}, {HostResource::host_memory, 0.5}});
  expect_near(shares_of(cpu(), {.resource = Resource::disk_write, .moved_bytes = kMoved}),
              {{HostResource::cores, 0.1},
               {HostResource::host_memory, 0.05},
               {HostResource::disk_write, 1},
               {HostResource::disk, 1}});
}

TEST(ForeseenTimes, RanksMayHaveMoreThreadsThanTheirHostHasCores) {
  Machine machine = cpu();
  machine.device.capabilities.workers = 1;
  machine.processor.cores.value = 0.25;  // eight ranks with a thread each, on two cores
  EXPECT_NEAR(shares_of(machine, {.flops = 1e9}, 8).at(HostResource::cores), 0.5, 1e-3);
}

TEST(ForeseenTimes, OnANetworkACpuCopiesOperandsAndSleeps) {
  Machine machine = cpu();
  machine.hosts = 2;
  machine.network_rate.value = machine.peer_rate.value = 1e8;
  // Sends for a second, and copies for a fifth of one: a core moves 5 GB/s.
  const auto shares =
      shares_of(machine, {.resource = Resource::peers, .bytes = 1e9, .moved_bytes = kMoved});
  EXPECT_NEAR(shares.at(HostResource::cores), 0.5 * 0.2, 1e-3);
  EXPECT_NEAR(shares.at(HostResource::nic_out), 1, 1e-3);
}

TEST(ForeseenTimes, BothDirectionsShareWhatWasMeasuredOfThem) {
  Machine machine = cpu();
  machine.disk.mixed_rate.value = 1e9;  // 3/4 of what each reaches alone, at once
  const auto read = shares_of(machine, {.resource = Resource::disk_read, .moved_bytes = kMoved});
  EXPECT_NEAR(read.at(HostResource::disk), 0.75, 1e-3);
  EXPECT_NEAR(read.at(HostResource::disk_read), 1, 1e-3);
}

TEST(ForeseenTimes, RanksOfAHostHaveAPartOfItEach) {
  expect_near(shares_of(cpu(), {.flops = 1e9, .bytes = 4e9}, 2),
              {{HostResource::cores, 0.5}, {HostResource::host_memory, 0.2}});
}

/// A device with 100 GB/s of memory behind a link of 20 GB/s each way.
Machine gpu() {
  kernels::DeviceCapabilities capabilities;
  capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  Machine machine = machine::typical_machine(capabilities);
  machine.instruction_seconds.value = 0;
  machine.device.fp32_flops.value = 1e12;
  machine.device.bytes_per_second.value = 1e11;
  machine.memory.bytes_per_second.value = 4e10;
  machine.link = {.to_device = {2e10}, .to_host = {2e10}, .both_ways = {}};
  machine.peer_rate.value = 1e10;
  return machine;
}

TEST(ForeseenTimes, ADeviceHasMemoryAndALinkOfItsOwn) {
  expect_near(shares_of(gpu(), {.flops = 1e12, .bytes = 2e10}, 4),
              {{HostResource::device_memory, 0.2}});
  expect_near(shares_of(gpu(), {.resource = Resource::upload, .moved_bytes = kMoved}, 4),
              {{HostResource::link_up, 1},
               {HostResource::host_memory, 0.125},
               {HostResource::device_memory, 0.2}});
  Machine machine = gpu();
  machine.link.both_ways.value = 2.5e10;
  const auto down = shares_of(machine, {.resource = Resource::download, .moved_bytes = kMoved}, 4);
  EXPECT_NEAR(down.at(HostResource::link_down), 1, 1e-3);
  EXPECT_NEAR(down.at(HostResource::link), 0.8, 1e-3);
}

TEST(ForeseenTimes, WhoIsAloneHasAllOfTheRateThatIsReached) {
  Machine machine = gpu();
  machine.device.memory_efficiency.value = 0.8;
  machine.link.efficiency.value = 0.5;
  machine.link.both_ways.value = 4e10;  // each way is as fast as alone
  EXPECT_NEAR(shares_of(machine, {.bytes = 8e10}).at(HostResource::device_memory), 1, 1e-3);
  expect_near(shares_of(machine, {.resource = Resource::upload, .moved_bytes = kMoved}),
              {{HostResource::link_up, 1},
               {HostResource::link, 0.5},
               {HostResource::host_memory, 0.25},
               {HostResource::device_memory, 0.125}});
  machine.hosts = 2;
  machine.collective_efficiency.value = 0.5;
  machine.peer_rate.value = machine.network_rate.value = 1e10;
  const Demand demand{.resource = Resource::peers, .moved_bytes = kMoved};
  EXPECT_NEAR(shares_of(machine, demand).at(HostResource::nic_out), 1, 1e-3);
}

TEST(ForeseenTimes, ARingLeavesEachHostOnce) {
  Machine machine = gpu();
  machine.hosts = 2;
  machine.devices = 4;
  machine.network_rate.value = 2e10;  // 5 GB/s for each rank
  // Takes 0.1 s on the links of devices, at 1e10 bytes per second. A host sends 1e9 bytes once, and
  // its network could send twice as many; each of its ranks has a quarter of that half.
  const Demand demand{.resource = Resource::peers, .bytes = 1e9, .moved_bytes = 1'000'000'000};
  const auto sum = shares_of(machine, demand, 4);
  EXPECT_NEAR(sum.at(HostResource::nic_out), 0.5 / 4, 1e-3);
  EXPECT_NEAR(sum.at(HostResource::nic_in), 0.5 / 4, 1e-3);
  machine.hosts = 1;
  EXPECT_EQ(shares_of(machine, demand, 4).count(HostResource::nic_out), 0);
}

}  // namespace
}  // namespace strata::runtime
