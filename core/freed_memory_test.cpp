#include "core/freed_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace strata {
namespace {

TEST(FreedMemory, StaysWithTheProcess) {
#ifndef __GLIBC__
  GTEST_SKIP() << "the C library has no such setting";
#endif
  keep_freed_memory();
  constexpr std::size_t kBytes = std::size_t{1} << 16, kBlocks = 256;
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::make_unique<std::byte[]>(kBytes));
    std::memset(blocks.back().get(), 1, kBytes);
  }
  const void* end = sbrk(0);
  blocks.clear();
  EXPECT_EQ(sbrk(0), end);
}

std::size_t resident_bytes() {
  std::size_t whole = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> whole >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(FreedMemory, GoesBackFromBetweenBlocksThatAreInUse) {
#ifndef __GLIBC__
  GTEST_SKIP() << "the C library has no such call";
#endif
  constexpr std::size_t kBytes = std::size_t{1} << 16, kBlocks = 512;
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::make_unique<std::byte[]>(kBytes));
    std::memset(blocks.back().get(), 1, kBytes);
  }
  for (std::size_t i = 0; i < kBlocks; ++i)
    if (i % 16 != 15) blocks[i].reset();
  const std::size_t kept = resident_bytes();
  return_memory_freed_so_far();
  EXPECT_LT(resident_bytes() + kBytes * kBlocks / 2, kept);
}

}  // namespace
}  // namespace strata
