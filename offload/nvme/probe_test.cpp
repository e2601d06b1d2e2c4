#include "offload/nvme/probe.h"

#include <gtest/gtest.h>

#include "core/test_directory.h"
#include "offload/nvme/open_store.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

void expect_untouched(NvmeStore& store) {
  EXPECT_EQ(store.counters().read_bytes, 0);
  EXPECT_EQ(store.counters().written_bytes, 0);
  std::vector<std::byte> in(static_cast<std::size_t>(store.bytes()), std::byte{1});
  store.read_bytes(0, in, "all");
  EXPECT_EQ(in, std::vector<std::byte>(static_cast<std::size_t>(store.bytes())));
}

TEST(Probe, TakesAtMostHalfOfWhatIsFree) {
  const TestDirectory directory;
  const std::int64_t bytes = probe_bytes({directory.path()});
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, 256 * kMiB);
  EXPECT_EQ(bytes % runtime::kDiskAlignment, 0);
  EXPECT_EQ(probe_bytes({directory.path(), directory / "missing"}), 0);
}

TEST(Probe, MeasuresAndLeavesTheStoreAsNew) {
  const TestDirectory directory;
  const auto store =
      open_store({.directories = {directory.path(), directory.path()}, .bytes = 40 * kMiB + 4096});
  const ProbeResult result = probe(*store, std::chrono::milliseconds(50));
  EXPECT_GT(result.read_rate, 0);
  EXPECT_GT(result.write_rate, 0);
  EXPECT_GT(result.mixed_rate, 0);
  EXPECT_GT(result.seconds, 0.03);
  EXPECT_EQ(store->settings(), result.settings);
  EXPECT_GE(result.settings.request_bytes, kMiB);
  EXPECT_LE(result.settings.request_bytes, 4 * kMiB);
  expect_untouched(*store);
}

TEST(Probe, DoesNotMeasureAStoreOfAFewSectors) {
  const auto store = open_memory_store(3 * 4096, 1, {});
  const ProbeResult result = probe(*store);
  EXPECT_EQ(result.read_rate, 0);
  EXPECT_EQ(result.settings, store->settings());
  expect_untouched(*store);
}

}  // namespace
}  // namespace strata::offload
