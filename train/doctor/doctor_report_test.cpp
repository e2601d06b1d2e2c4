#include "train/doctor/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/byte_size.h"
#include "core/json.h"
#include "machine/hardware_file.h"

namespace strata::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The report of a machine on which nothing needs to change.
DoctorReport healthy() {
  DoctorReport report;
  report.host = machine::cpu_machine(4);
  report.host.processor.name = "Some CPU";
  report.host.processor.cores = machine::measured(4);
  report.host.memory.bytes = machine::measured(64 * 0x1p30);
  report.host.device.fp32_flops = machine::measured(1.96e11);
  report.host.device.bf16_flops = machine::measured(3e11);
  report.host.device.bytes_per_second = machine::measured(2.5e10);
  report.state.instructions = "avx2";
  report.state.online_cores = 8;
  report.state.available_bytes = std::int64_t{32} << 30;
  report.state.huge_pages = "madvise";
  report.state.transfers = {.registered = true, .tried_bytes = 64 << 20};
  report.why_no_device = "no driver";
  return report;
}

DiskFacts drive() {
  DiskFacts disk;
  disk.path = "/drive";
  disk.file_system = "ext4 on /dev/nvme0n1";
  disk.free_bytes = std::int64_t{100} << 30;
  disk.direct = true;
  disk.speed = {.read_rate = machine::measured(3e9),
                .write_rate = machine::measured(2e9),
                .mixed_rate = machine::measured(2.5e9),
                .request_bytes = 2 << 20,
                .depth = 8};
  return disk;
}

DeviceFacts gpu() {
  DeviceFacts device;
  device.description = "Some GPU, driver 1";
  device.name = "NVIDIA H200";
  device.capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  device.memory = {.free_bytes = 1 << 30, .total_bytes = std::int64_t{2} << 30};
  device.link = {.to_device = machine::measured(2e10),
                 .to_host = machine::measured(1e10),
                 .both_ways = machine::measured(3e10)};
  return device;
}

TEST(DoctorReport, NothingToChange) {
  const DoctorReport report = healthy();
  EXPECT_THAT(advice(report), IsEmpty());
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("cores         4 usable of 8"));
  EXPECT_THAT(text, HasSubstr("32.00 GiB available of 64.00 GiB\n"));
  EXPECT_THAT(text, HasSubstr("products      196 GFLOP/s in fp32, 300 GFLOP/s in bf16\n"));
  EXPECT_THAT(text, HasSubstr("25.0 GB/s copied"));
  EXPECT_THAT(text, HasSubstr("memlock       unlimited: disk windows are registered\n"));
  EXPECT_THAT(text, HasSubstr("GPU           no driver: steps run on the CPU"));
  EXPECT_THAT(text, HasSubstr("nothing to change"));
}

TEST(DoctorReport, NodesOfMemory) {
  DoctorReport report = healthy();
  EXPECT_THAT(to_text(report), HasSubstr("NUMA nodes    1\n"));
  report.host.processor.numa = {{0, {0, 1}}, {1, {2, 3}}};
  EXPECT_THAT(to_text(report),
              HasSubstr("NUMA nodes    2: ranks stay near their memory; cores 0-1; 2-3\n"));
  EXPECT_THAT(to_json(report), HasSubstr("\"numa_nodes\": 2"));
}

TEST(DoctorReport, LockedMemoryThatIsTooLittle) {
  DoctorReport report = healthy();
  report.host.memory.locked_bytes = machine::measured(8 << 20);
  EXPECT_THAT(to_text(report), HasSubstr("8.00 MiB, but it does not bind this user"));
  EXPECT_THAT(advice(report), IsEmpty());
  report.state.transfers.registered = false;
  EXPECT_THAT(
      advice(report),
      ElementsAre(HasSubstr("memlock 8.00 MiB: disk windows are not registered; ulimit -l")));
  EXPECT_THAT(to_text(report), HasSubstr("to change\n  memlock 8.00 MiB"));
}

TEST(DoctorReport, ForbiddenIoUringIsSaidOnce) {
  DoctorReport report = healthy();
  report.state.transfers.why_no_uring = "io_uring is forbidden here";
  report.state.transfers.registered = false;
  report.disks = {drive()};
  report.disks[0].notes = {"io_uring is forbidden here: disk transfers use threads",
                           "/drive: this file system refuses O_DIRECT"};
  EXPECT_THAT(advice(report), ElementsAre(HasSubstr("kernel.io_uring_disabled=0"),
                                          HasSubstr("/drive: this file system refuses O_DIRECT")));
  EXPECT_THAT(to_text(report), HasSubstr("threads do the disk transfers"));
}

TEST(DoctorReport, ControlGroups) {
  DoctorReport report = healthy();
  report.state.cpu_quota = 1.5;
  report.state.cgroup = machine::MemoryCgroup{.limit_bytes = std::int64_t{4} << 30,
                                              .left_bytes = std::int64_t{1} << 30};
  EXPECT_THAT(to_text(report), HasSubstr("a control group grants the time of 1.5"));
  EXPECT_THAT(to_text(report), HasSubstr("allows 4.00 GiB, 1.00 GiB of it are left"));
  EXPECT_THAT(advice(report), ElementsAre(HasSubstr("--threads 1")));
}

TEST(DoctorReport, DisksAndDevices) {
  DoctorReport report = healthy();
  report.disks = {drive(), drive()};
  report.striped = report.disks[0].speed;
  report.disks[1].speed = {};
  report.devices = {gpu()};
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("/drive: ext4 on /dev/nvme0n1, 100.00 GiB free, O_DIRECT"));
  EXPECT_THAT(text, HasSubstr("3.00 GB/s read, 2.00 GB/s written, 2.50 GB/s both at once; chosen: "
                              "requests of 2.00 MiB, 8 at a time"));
  EXPECT_THAT(text, HasSubstr("too little free space to measure"));
  EXPECT_THAT(text, HasSubstr("disks striped 3.00 GB/s read"));
  EXPECT_THAT(text, HasSubstr("GPU           Some GPU, driver 1, 1.00 GiB free of 2.00 GiB"));
  EXPECT_THAT(text, HasSubstr("20.0 GB/s to the device, 10.0 GB/s back, 30.0 GB/s both at once"));
  EXPECT_THAT(text, Not(HasSubstr("steps run on the CPU")));
}

TEST(DoctorReport, TheMachineIsTheHostWithWhatWasMeasuredOfDevicesAndDisks) {
  DoctorReport report = healthy();
  EXPECT_EQ(machine_of(report).device, report.host.device) << "the CPU plays it";
  report.devices = {gpu(), gpu()};
  report.disks = {drive(), drive()};
  report.striped = drive().speed;
  report.striped->read_rate = machine::measured(6e9);
  const machine::Machine machine = machine_of(report);
  EXPECT_EQ(machine.description, "Some CPU, 2 x NVIDIA H200");
  EXPECT_EQ(machine.devices, 2);
  EXPECT_EQ(machine.processor, report.host.processor);
  EXPECT_EQ(machine.device.flops(DType::bf16).value, 989.4e12) << "of the data sheet";
  EXPECT_EQ(machine.device.memory_bytes, machine::measured(0x1p31));
  EXPECT_EQ(machine.device.reserved_bytes, machine::measured(0x1p30));
  EXPECT_EQ(machine.link, gpu().link);
  EXPECT_EQ(machine.disk.read_rate, machine::measured(6e9));
  EXPECT_EQ(machine.disk.bytes, machine::measured(100 * 0x1p30)) << "folders of one file system";
  report.disks.back().file_system = "ext4 on /dev/nvme1n1";
  EXPECT_EQ(machine_of(report).disk.bytes, machine::measured(200 * 0x1p30));
  EXPECT_EQ(machine::read_hardware(machine::to_json(machine), "written"), machine);
}

TEST(DoctorReport, ADeviceThatCannotBeUsed) {
  DoctorReport report = healthy();
  report.devices.push_back({.description = "number 0", .problem = "no code for sm_50"});
  EXPECT_THAT(to_text(report), HasSubstr("GPU           number 0: no code for sm_50\n"));
  EXPECT_THAT(to_text(report), Not(HasSubstr("to the device")));
  EXPECT_THAT(advice(report), ElementsAre("GPU: no code for sm_50"));
}

}  // namespace
}  // namespace strata::train
