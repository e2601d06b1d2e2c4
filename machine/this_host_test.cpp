#include "machine/this_host.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace strata::machine
