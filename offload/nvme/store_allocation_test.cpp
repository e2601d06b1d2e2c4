// Tests that a repeated step allocates nothing: its transfers reuse their memory.
#include <gtest/gtest.h>

#include "core/testing/allocation_counter.h"
#include "core/testing/test_directory.h"
#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/nvme_store.h"
#include "offload/testing/test_devices.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class StoreAllocationsOn : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

INSTANTIATE_TEST_SUITE_P(EveryDevice, StoreAllocationsOn, testing::ValuesIn(all_device_kinds()),
                         [](const auto& instance) { return instance.param.name; });

/// Has two writes and two reads under way at once, across blocks.
void step(NvmeStore& store, std::span<std::byte> window) {
  const std::size_t half = window.size() / 2;
  for (std::int64_t at = 4096; at + 10 * kMiB < store.bytes(); at += 10 * kMiB) {
    const auto a = store.start_write(at, window.first(half), "a");
    const auto b = store.start_write(at + 5 * kMiB, window.subspan(half), "b");
    store.wait(a);
    store.wait(b);
    const auto c = store.start_read(at, window.first(half), "c");
    const auto d = store.start_read(at + 5 * kMiB, window.subspan(half), "d");
    store.wait(d);
    store.wait(c);
  }
}

TEST_P(StoreAllocationsOn, ASecondStepAllocatesNothing) {
  if (!tests::can_count_allocations()) GTEST_SKIP() << "the sanitizer has its own allocator";
  const TestDirectory directory;
  const auto store = make_store(GetParam(), directory.path(), 64 * kMiB);
  const AlignedMemory window(10 * kMiB);
  // The number of requests under way varies from step to step; queues grow to the largest within a
  // few.
  tests::AllocationCount count{.allocations = 1};
  for (int attempt = 0; attempt < 10 && count.allocations > 0; ++attempt) {
    step(*store, window.bytes());
    tests::start_counting_allocations();
    step(*store, window.bytes());
    count = tests::stop_counting_allocations();
  }
  EXPECT_EQ(count.allocations, 0) << count.first;
}

}  // namespace
}  // namespace strata::offload
