#include "machine/hardware_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/file.h"
#include "core/testing/test_directory.h"
#include "machine/hardware_table.h"

namespace strata::machine {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::string& name) { return to_json(find_hardware(name).value()); }

std::string refusal(const std::string& text) {
  try {
    (void)read_hardware(text, "box.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

/// Returns the text of rtx4090 with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = text_of("rtx4090");
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(HardwareFile, EveryFileIsReadUnderItsNameAndWrittenBackTheSame) {
  for (const std::string& name : hardware_names()) {
    const std::optional<Machine> machine = find_hardware(name);
    ASSERT_TRUE(machine) << name;
    EXPECT_EQ(machine->name, name);
    EXPECT_FALSE(machine->description.empty()) << name;
    EXPECT_EQ(read_hardware(to_json(*machine), name), *machine);
    for (const std::string& driver_name : machine->device.names)
      EXPECT_EQ(find_hardware_of_device(driver_name)->device.fp32_flops, machine->device.fp32_flops)
          << driver_name;
  }
}

TEST(HardwareFile, TheNamesThatPeopleKnowAreThere) {
  for (const char* name :
       {"rtx3090", "rtx4080", "rtx4090", "rtx5060ti-16gb", "rtx5090", "a6000", "l40s", "a100-40",
        "a100-80", "h100", "h200", "gh200", "b200", "two-cores", "8xa100", "8xh100", "16x8xh100"})
    EXPECT_THAT(hardware_names(), Contains(name));
  EXPECT_EQ(find_hardware("8xH100")->name, "8xh100");
  EXPECT_FALSE(find_hardware("rtx4091"));
  EXPECT_FALSE(find_hardware_of_device("NVIDIA H2"));
  EXPECT_FALSE(find_hardware_of_device(""));
  EXPECT_EQ(find_hardware_of_device("NVIDIA H100 80GB HBM3")->name, "h100") << "the smallest";
  EXPECT_EQ(find_hardware_of_device("NVIDIA H100 80GB HBM3", 8)->name, "8xh100");
  EXPECT_EQ(find_hardware_of_device("NVIDIA H100 80GB HBM3", 3)->name, "h100");
}

TEST(HardwareFile, LatenciesMayBeLeftOut) {
  EXPECT_EQ(find_hardware("16x8xh100")->network_latency, assumed(5e-6));
  EXPECT_EQ(find_hardware("16x8xh100")->peer_latency, assumed(2e-6));
  EXPECT_FALSE(find_hardware("rtx4090")->network_latency.known());
}

TEST(HardwareFile, SharesThatAreLeftOutAreNotKnown) {
  const Machine machine = find_hardware("8xh100").value();
  EXPECT_EQ(machine.device.attention_efficiency, assumed(0.45));
  EXPECT_EQ(machine.device.memory_efficiency, assumed(0.88));
  EXPECT_EQ(machine.collective_efficiency, assumed(0.9));
  EXPECT_FALSE(machine.link.efficiency.known()) << "its rates are those that copies reach";
  Machine other = find_hardware("two-cores").value();
  EXPECT_FALSE(other.device.attention_efficiency.known());
  EXPECT_FALSE(other.device.memory_efficiency.known());
  EXPECT_FALSE(other.collective_efficiency.known());
  EXPECT_THAT(to_json(other), Not(HasSubstr("\"efficiency\"")));
  other.link.efficiency = measured(0.9);
  EXPECT_THAT(to_json(other), HasSubstr("\"efficiency\": [0.9, \"measured\"]"));
  EXPECT_EQ(read_hardware(to_json(other), "written"), other);
}

TEST(HardwareFile, ACpuPlaysTheDeviceWithAllItsCores) {
  const Machine machine = find_hardware("two-cores").value();
  EXPECT_TRUE(machine.host_is_device());
  EXPECT_EQ(machine.device.capabilities.workers, 2);
  EXPECT_EQ(machine.device.fp32_flops.source, Source::measured);
}

TEST(HardwareFile, NodesOfMemoryAreKept) {
  Machine machine = find_hardware("8xa100").value();
  machine.processor.numa = {{0, {0, 1, 2, 8}}, {1, {3, 4}}};
  EXPECT_THAT(to_json(machine), HasSubstr("\"cores\": \"0-2,8\""));
  EXPECT_EQ(read_hardware(to_json(machine), "written"), machine);
}

TEST(HardwareFile, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_THAT(
      refusal(changed("\"hosts\": 1", "\"hosts\": 0")),
      AllOf(HasSubstr("box.json:5: hosts"), HasSubstr("an integer from 1 to 1048576, found")));
  EXPECT_THAT(refusal(changed("\"both_ways\"", "\"both_way\"")),
              HasSubstr("link.both_way: unknown key, expected one of to_device, to_host"));
  EXPECT_THAT(refusal(changed("\"to_host\"", "\"to_hots\"")),
              HasSubstr("link: misses the key \"to_host\""));
  EXPECT_THAT(refusal(changed("\"cuda\"", "\"rocm\"")), HasSubstr("expected \"cpu\" or \"cuda\""));
  EXPECT_THAT(refusal(changed("\"data sheet\"", "\"advertised\"")),
              HasSubstr("expected \"assumed\", \"given\", \"data sheet\" or \"measured\""));
  EXPECT_THAT(refusal(changed("\"version\": 1", "\"version\": 2")),
              HasSubstr("version: expected 1, found integer 2"));
  EXPECT_THAT(
      refusal(changed("25000000000,", "-3,")),
      HasSubstr("expected a number of bytes per second from 1000000 to 1e+24, found integer -3"));
  EXPECT_THAT(refusal(changed("25000000000,", "1e30,")),
              HasSubstr("from 1000000 to 1e+24, found real number 1e+30"));
  EXPECT_THAT(refusal(changed("25000000000,", "1e-300,")), HasSubstr("from 1000000 to 1e+24"));
  EXPECT_THAT(refusal(changed("25000000000,", "25,")),
              AllOf(HasSubstr("box.json:"), HasSubstr("link.to_device[0]: expected a number of "
                                                      "bytes per second from 1000000 to 1e+24")));
  EXPECT_THAT(refusal(changed("25769803776,", "24,")),
              HasSubstr("memory_bytes[0]: expected a whole number of bytes from 1000000 to 1e+18"));
  EXPECT_THAT(refusal(changed("25000000000,", "")), HasSubstr("[1e9, \"measured\"]"));
  EXPECT_THAT(refusal(changed("\"cores\": [16", "\"cores\": [0.4")),
              HasSubstr("processor.cores[0]: expected a whole number from 1 to 65536, found real"));
  EXPECT_THAT(refusal(changed("\"vector_bits\": [256", "\"vector_bits\": [300")),
              HasSubstr("vector_bits[0]: expected 128, 256 or 512, found integer 300"));
  EXPECT_THAT(refusal(changed("[1000000000, ", "[99000000000, ")),
              HasSubstr("reserved_bytes[0]: expected less than memory_bytes, found integer"));
  EXPECT_THAT(
      refusal(changed("[1000000000, ", "[1.5, ")),
      HasSubstr("reserved_bytes[0]: expected a whole number of bytes from 1 to 1e+18, found real"));
  EXPECT_THAT(refusal(changed("[0.9, ", "[90, ")),
              HasSubstr("product_efficiency[0]: expected a number from 1e-06 to 1, found"));
  EXPECT_THAT(refusal(changed("[0.65, ", "[1.5, ")),
              HasSubstr("attention_efficiency[0]: expected a number from 1e-06 to 1, found"));
  EXPECT_THAT(refusal(changed("[0.91, ", "[0, ")),
              HasSubstr("memory_efficiency[0]: expected a number from 1e-06 to 1, found"));
  EXPECT_THAT(refusal(changed("\"count\": 1", "\"count\": 2000000")),
              HasSubstr("count: expected an integer from 1 to 1048576, found integer 2000000"));
  EXPECT_THAT(refusal(changed("\"depth\": 16", "\"depth\": 1000000000")),
              HasSubstr("disk.depth: expected an integer from 1 to 65536"));
  EXPECT_THAT(refusal(changed("\"hosts\": 1", "\"hosts\": 2")), HasSubstr("network_rate"));
  EXPECT_THAT(refusal(""), HasSubstr("box.json"));
  EXPECT_THAT(refusal("{\"version\": 1}"), HasSubstr("name"));
}

TEST(HardwareFile, NodesThatShareSomethingAreRefused) {
  const auto said = [](const std::vector<NumaNode>& nodes) {
    Machine machine = find_hardware("two-cores").value();
    machine.processor.numa = nodes;
    return refusal(to_json(machine));
  };
  EXPECT_EQ(said({{0, {0}}, {1, {1}}}), "accepted");
  EXPECT_THAT(said({{0, {0}}, {0, {1}}}),
              HasSubstr("numa_nodes[1].number: expected a number that no other node has"));
  EXPECT_THAT(said({{0, {0}}, {1, {0}}}),
              HasSubstr("numa_nodes[1].cores: expected cores that no other node has"));
  EXPECT_THAT(said({{0, {0, 1, 2}}}),
              HasSubstr("numa_nodes[0].cores: expected at most 2 cores of all nodes"));
}

TEST(HardwareFile, ANameThatIsNearIsSuggested) {
  const auto said = [](const char* name) -> std::string {
    try {
      (void)load_hardware(name);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "loaded";
  };
  for (const char* name : {"RTX-4090", "4090", "rtx4090.json", "rtx409"})
    EXPECT_THAT(said(name), HasSubstr(", did you mean 'rtx4090'?")) << name;
  EXPECT_THAT(said("h1000"), HasSubstr(", did you mean 'h100'?"));
  EXPECT_THAT(said("x"), Not(HasSubstr("did you mean")));
}

TEST(HardwareFile, IsLoadedByNameOrByPath) {
  EXPECT_EQ(load_hardware("h200"), find_hardware("h200"));
  const TestDirectory directory;
  EXPECT_EQ(load_hardware(directory.file("mine.json", text_of("h200"))), find_hardware("h200"));
  try {
    (void)load_hardware("h2000");
    ADD_FAILURE() << "there is no such machine";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'h2000'"), HasSubstr("h100, h100-nvl")));
  }
}

}  // namespace
}  // namespace strata::machine
