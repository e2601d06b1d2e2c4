#include "train/run/host_limits.h"

#include <gtest/gtest.h>

namespace strata::train {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(HostLimits, IsLimitedByTheFlagWhereTheArenaHasNoLimitOfItsOwn) {
  OffloadOptions options;
  EXPECT_EQ(host_limit_on_cpu(options), 0);
  options.host_memory_bytes = kGiB;
  EXPECT_EQ(host_limit_on_cpu(options), kGiB);
  options.device_memory_bytes = kGiB;
  EXPECT_EQ(host_limit_on_cpu(options), 0);
}

TEST(HostLimits, RefusesWhatDoesNotFitInAmountsThatPeopleRead) {
  EXPECT_EQ(lacking_host_memory(3 * kGiB, 8, 20 * kGiB),
            "out of memory: 8 ranks on this host plan 3.00 GiB each, 24.00 GiB together, and 20.00 "
            "GiB are free");
  EXPECT_EQ(lacking_host_memory(3 * kGiB, 1, kGiB / 2),
            "out of memory: the one rank on this host plans 3.00 GiB, and 512.00 MiB are free");
}

TEST(HostLimits, AcceptsWhatJustFitsAndWhatNobodyKnows) {
  EXPECT_EQ(lacking_host_memory(3 * kGiB, 8, 24 * kGiB), "");
  EXPECT_NE(lacking_host_memory(3 * kGiB, 8, 24 * kGiB - 1), "");
  EXPECT_EQ(lacking_host_memory(3 * kGiB, 8, 0), "");
}

}  // namespace
}  // namespace strata::train
