#include "core/freed_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
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

}  // namespace
}  // namespace strata
