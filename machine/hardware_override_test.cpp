#include "machine/hardware_override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "machine/hardware_file.h"
#include "machine/hardware_table.h"

namespace strata::machine {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Machine loaded(const std::string& text) { return load_overridden_hardware(text); }

std::string refusal(const std::string& text) {
  try {
    (void)loaded(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HardwareOverride, ANameAloneIsTheMachineOfItsFile) {
  EXPECT_EQ(loaded("rtx4090"), find_hardware("rtx4090"));
}

TEST(HardwareOverride, EachKeyReplacesItsFigureByOneThatIsGiven) {
  const struct {
    const char* override;
    Figure (*figure)(const Machine&);
    double value;
  } rows[] = {
      {"memory=64GB", [](const Machine& m) { return m.memory.bytes; }, 64e9},
      {"device_memory=48GiB", [](const Machine& m) { return m.device.memory_bytes; },
       48.0 * (1 << 30)},
      {"reserved=2GB", [](const Machine& m) { return m.device.reserved_bytes; }, 2e9},
      {"reserved=0", [](const Machine& m) { return m.device.reserved_bytes; }, 0},
      {"link=12GB/s", [](const Machine& m) { return m.link.to_device; }, 12e9},
      {"link=12GB/s", [](const Machine& m) { return m.link.to_host; }, 12e9},
      {"link_up=12GB/s", [](const Machine& m) { return m.link.to_device; }, 12e9},
      {"link_down=12GB/s", [](const Machine& m) { return m.link.to_host; }, 12e9},
      {"disk=3GB/s", [](const Machine& m) { return m.disk.read_rate; }, 3e9},
      {"disk=3GB/s", [](const Machine& m) { return m.disk.write_rate; }, 3e9},
      {"disk_read=3GB/s", [](const Machine& m) { return m.disk.read_rate; }, 3e9},
      {"disk_write=3GB/s", [](const Machine& m) { return m.disk.write_rate; }, 3e9},
      {"disk_bytes=4TB", [](const Machine& m) { return m.disk.bytes; }, 4e12},
      {"tbw=600TB", [](const Machine& m) { return m.disk.tbw; }, 6e14},
      {"disk=none", [](const Machine& m) { return m.disk.tbw; }, 0},
      {"disk=none", [](const Machine& m) { return m.disk.bytes; }, 0},
      {"network=400Gb/s", [](const Machine& m) { return m.network_rate; }, 50e9},
      {"link=64Gbit/s", [](const Machine& m) { return m.link.to_host; }, 8e9},
      {"disk=50Gbps", [](const Machine& m) { return m.disk.read_rate; }, 6.25e9},
      {"network=25GB/s", [](const Machine& m) { return m.network_rate; }, 25e9},
      {"peer=1.5 GB/s", [](const Machine& m) { return m.peer_rate; }, 1.5e9},
      {"latency=5us", [](const Machine& m) { return m.network_latency; }, 5000 * 1e-9},
      {"latency=2ms", [](const Machine& m) { return m.network_latency; }, 2'000'000 * 1e-9},
      {"peer_latency=700ns", [](const Machine& m) { return m.peer_latency; }, 700 * 1e-9},
      {"products=0.7", [](const Machine& m) { return m.device.product_efficiency; }, 0.7},
      {"attention=0.5", [](const Machine& m) { return m.device.attention_efficiency; }, 0.5},
      {"elementwise=1", [](const Machine& m) { return m.device.memory_efficiency; }, 1},
      {"copies=0.85", [](const Machine& m) { return m.link.efficiency; }, 0.85},
      {"collectives=1e-6", [](const Machine& m) { return m.collective_efficiency; }, 1e-6},
      {"cores=8", [](const Machine& m) { return m.processor.cores; }, 8},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.override);
    const Machine machine = loaded(std::string("h100,") + row.override);
    EXPECT_EQ(row.figure(machine), row.value > 0 ? given(row.value) : Figure{});
    EXPECT_THAT(machine.description, HasSubstr(std::string(" with ") + row.override));
    EXPECT_EQ(read_hardware(to_json(machine), "written"), machine);
  }
  const Machine many = loaded("h100,hosts=4,devices=2,network=25GB/s");
  EXPECT_EQ(many.hosts, 4);
  EXPECT_EQ(many.devices, 2);
}

TEST(HardwareOverride, OneDirectionLeavesTheOtherAndChangesBothTogetherInProportion) {
  const Machine before = loaded("rtx4090"), after = loaded("rtx4090,link_up=12.5GB/s");
  EXPECT_EQ(after.link.to_host, before.link.to_host);
  EXPECT_EQ(after.link.both_ways, assumed(before.link.both_ways * 37.5 / 50));
  EXPECT_EQ(loaded("rtx4090,link_down=5GB/s").link.to_device, before.link.to_device);
}

TEST(HardwareOverride, ALimitOfTheFileOnHostMemoryDoesNotHoldForAnotherAmount) {
  Machine limited = find_hardware("rtx4090").value();
  limited.memory.allowed_bytes = measured(8e9);
  override_hardware(limited, "memory=64GB", "x");
  EXPECT_FALSE(limited.memory.allowed_bytes.known());
}

TEST(HardwareOverride, MoreCoresOfACpuComputeMore) {
  const Machine before = loaded("two-cores"), after = loaded("two-cores,cores=6");
  EXPECT_EQ(after.device.capabilities.workers, 6);
  EXPECT_EQ(after.device.fp32_flops, assumed(3 * before.device.fp32_flops));
  EXPECT_EQ(loaded("rtx4090,cores=6").device.fp32_flops, loaded("rtx4090").device.fp32_flops);
}

TEST(HardwareOverride, AFileIsOverriddenAndAFileWithACommaIsAFile) {
  const TestDirectory directory;
  const std::string text = to_json(find_hardware("h200").value());
  EXPECT_EQ(loaded(directory.file("mine.json", text) + ",link=1GB/s").link.to_host, given(1e9));
  EXPECT_EQ(loaded(directory.file("my,own=1.json", text)), find_hardware("h200"));
}

TEST(HardwareOverride, WhatIsWrongIsNamed) {
  const std::string of = "hardware 'rtx4090,";
  EXPECT_THAT(refusal("rtx4090,lnk=12GB/s"),
              AllOf(HasSubstr(of + "lnk=12GB/s': lnk=12GB/s: unknown key 'lnk', did you mean "
                                   "'link'? known keys are memory, device_memory"),
                    HasSubstr("devices")));
  EXPECT_THAT(refusal("rtx4090,zzzz=1"), HasSubstr("unknown key 'zzzz'; known keys are memory"));
  EXPECT_THAT(refusal("rtx4090,h100"), HasSubstr("found 'h100', expected KEY=VALUE with a key of"));
  EXPECT_THAT(refusal("rtx4090,"), HasSubstr("nothing after the comma, expected KEY=VALUE"));
  EXPECT_THAT(refusal("rtx4090,,cores=2"), HasSubstr("found '', expected KEY=VALUE"));
  EXPECT_THAT(refusal("rtx4090,link=1GB/s,link=2GB/s"),
              HasSubstr("link=2GB/s: 'link' is given twice"));
  for (const char* value : {"12GB", "0GB/s", "fast", "unlimited/s", "", "/s", "-1GB/s", "1e10GB/s"})
    EXPECT_THAT(refusal(std::string("rtx4090,link=") + value),
                HasSubstr(std::string("found '") + value + "', expected a rate such as 12GB/s"));
  for (const char* value : {"64GB/s", "0", "unlimited", "none", "2e18"})
    EXPECT_THAT(refusal(std::string("rtx4090,memory=") + value),
                HasSubstr(std::string("found '") + value + "', expected an amount such as 64GB"));
  EXPECT_THAT(refusal("rtx4090,disk=no"),
              HasSubstr("disk=no: found 'no', expected none, or a rate such as 5GB/s"));
  for (const char* value : {"5", "0us", "1.5us", "5s", "1001ms", "us", "-1ns"})
    EXPECT_THAT(refusal(std::string("8xh100,latency=") + value),
                HasSubstr(std::string("found '") + value + "', expected a time such as 5us"));
  for (const char* value : {"0", "1.01", "-0.5", "50%", "nan", "inf", "", "0.5x", " 0.5"})
    EXPECT_THAT(refusal(std::string("rtx4090,attention=") + value),
                HasSubstr(std::string("found '") + value + "', expected a share from 1e-06 to 1"));
  EXPECT_THAT(refusal("rtx4090,cores=1.5"),
              HasSubstr("found '1.5', expected a whole number from 1 to 65536"));
  EXPECT_THAT(refusal("rtx4090,hosts=0"),
              HasSubstr("found '0', expected a whole number from 1 to 1048576"));
}

TEST(HardwareOverride, WhatHasNoUnitOrTwoReadingsIsRefused) {
  const struct {
    const char* override;
    const char* what;
  } rows[] = {
      {"memory=64", "memory=64: found '64', which is 64 bytes; give a unit, such as 64GB"},
      {"reserved=2", "found '2', which is 2 bytes; give a unit"},
      {"tbw=600", "found '600', which is 600 bytes; give a unit"},
      {"disk_bytes=1", "found '1', which is 1 byte; give a unit"},
      {"memory=64KB", "found '64KB', which is less than 1 MB"},
      {"link=64kB/s", "found '64kB/s', which is less than 1 MB per second"},
      {"link=25/s", "found '25/s', which is 25 bytes per second; give a unit, such as 12GB/s"},
      {"disk=5000/s", "found '5000/s', which is 5000 bytes per second; give a unit"},
      {"network=100gb/s", "which has two readings; write 100Gbit/s for bits or 100GB/s for bytes"},
      {"disk=50gbps", "which has two readings; write 50Gbit/s for bits or 50GB/s for bytes"},
      {"memory=64G", "which has two readings; write 64GB (powers of 1000) or 64GiB (of 1024)"},
  };
  for (const auto& row : rows)
    EXPECT_THAT(refusal(std::string("rtx4090,") + row.override), HasSubstr(row.what));
}

TEST(HardwareOverride, WhatContradictsTheRestOfTheMachineIsRefused) {
  EXPECT_THAT(refusal("two-cores,device_memory=8GB"),
              HasSubstr("the processor plays the device of this machine; give memory"));
  EXPECT_THAT(refusal("rtx4090,device_memory=1GB"),
              HasSubstr("the device has 1000000000 bytes of memory, and 1000000000 of them are "
                        "reserved; give a larger device_memory or a smaller reserved"));
  EXPECT_THAT(refusal("rtx4090,hosts=2"), HasSubstr("2 hosts need a network between them"));
  EXPECT_THAT(refusal("8xh100,network=1GB/s,hosts=1048576"),
              HasSubstr("1048576 hosts of 8 devices: expected at most 1048576 devices in all"));
  EXPECT_THAT(refusal("rtx4090,disk=none,disk_bytes=1TB"),
              HasSubstr("disk=none leaves no drive, and disk_bytes describes one"));
  for (const char* key : {"disk=5GB/s", "disk_read=5GB/s", "tbw=600TB"})
    EXPECT_THAT(refusal(std::string("two-cores,") + key),
                HasSubstr("describes a drive, and the machine has none; add disk_bytes=2TB"));
  EXPECT_NO_THROW(loaded("two-cores,disk=5GB/s,disk_bytes=1TB"));
}

TEST(HardwareOverride, AMachineHasToComeFirstAndToBeKnown) {
  EXPECT_THAT(refusal("link=12GB/s,disk=none"),
              HasSubstr("'link=12GB/s' changes a machine; name the machine before it"));
  EXPECT_THAT(refusal("rtx409,link=12GB/s"),
              HasSubstr("hardware 'rtx409' is not known, did you mean 'rtx4090'? It is neither"));
  EXPECT_THAT(refusal("x"), AllOf(HasSubstr("hardware 'x' is not known; it is neither a file nor"),
                                  Not(HasSubstr("did you mean"))));
}

TEST(HardwareOverride, AListIsSplitAtItsMachines) {
  EXPECT_THAT(split_hardware_list("a100-80,link=12GB/s,rtx4090"),
              ElementsAre("a100-80,link=12GB/s", "rtx4090"));
  EXPECT_THAT(split_hardware_list("h100,,l4,disk=none,cores=2"),
              ElementsAre("h100", "l4,disk=none,cores=2"));
  EXPECT_THAT(split_hardware_list("disk=none"), ElementsAre("disk=none"));
  EXPECT_TRUE(split_hardware_list("").empty());
}

}  // namespace
}  // namespace strata::machine
