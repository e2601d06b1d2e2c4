#include "machine/host_memory.h"

#include <gtest/gtest.h>

namespace strata::machine {
namespace {

TEST(HostMemory, ThisHostHasSome) {
  EXPECT_GT(available_host_bytes(), std::int64_t{1} << 24);
  EXPECT_GT(peak_resident_bytes(), 1 << 20);
}

}  // namespace
}  // namespace strata::machine
