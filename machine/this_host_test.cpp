#include "machine/this_host.h"

#include <gtest/gtest.h>

#include "machine/hardware_table.h"

namespace strata::machine {
namespace {

TEST(ThisHost, SaysWhatItIs) {
  const Machine machine = look_at_this_host();
  EXPECT_EQ(machine.processor.cores.whole(), static_cast<std::int64_t>(allowed_cores().size()));
  EXPECT_EQ(machine.processor.cores.source, Source::measured);
  EXPECT_FALSE(machine.processor.name.empty());
  EXPECT_GT(machine.memory.bytes, 0x1p28);
  EXPECT_TRUE(machine.host_is_device());
  EXPECT_EQ(machine.device, cpu_machine(static_cast<int>(machine.processor.cores.whole()),
                                        static_cast<int>(machine.processor.vector_bits.whole()))
                                .device)
      << "nothing was measured";
}

TEST(ThisHost, TakesThePlaceOfTheComputerInAHardwareFile) {
  Machine host = cpu_machine(16, 256);
  host.processor = {.name = "a processor", .cores = measured(16), .vector_bits = measured(256)};
  host.processor.numa = {{.number = 0, .cores = {0, 1}}};
  host.memory.bytes = measured(128e9);
  host.memory.allowed_bytes = measured(64e9);
  const std::optional<Machine> file = find_hardware("h100");
  ASSERT_TRUE(file);
  ASSERT_NE(file->processor.cores, 16);

  const Machine machine = placed_on(*file, host);
  EXPECT_EQ(machine.processor, host.processor);
  EXPECT_EQ(machine.memory.bytes, host.memory.bytes);
  EXPECT_EQ(machine.memory.allowed_bytes, host.memory.allowed_bytes);
  EXPECT_EQ(machine.memory.bytes_per_second, file->memory.bytes_per_second);
  EXPECT_EQ(machine.device, file->device);
  EXPECT_EQ(machine.link, file->link);
}

TEST(ThisHost, LeavesARankItsShareOfCores) {
  Machine host = cpu_machine(16, 512);
  host.processor.name = "a processor";
  host.memory.bytes = measured(128e9);
  const Machine rank = cpu_machine(4, 256);
  const Machine machine = placed_on(rank, host);
  EXPECT_EQ(machine.processor.cores, rank.processor.cores);
  EXPECT_EQ(machine.processor.vector_bits, rank.processor.vector_bits);
  EXPECT_EQ(machine.processor.name, "a processor");
  EXPECT_EQ(machine.memory.bytes, host.memory.bytes);
  EXPECT_EQ(machine.device, rank.device);
}

}  // namespace
}  // namespace strata::machine
