#include "train/run/transfer_report.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/execute/arena.h"

namespace strata::train {
namespace {

TEST(TransferReport, ResidentAreThePagesThatAreInMemory) {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const runtime::Arena arena("pageable", 3 * page + 64, runtime::ArenaKind::private_memory);
  for (int i = 0; i < 4; ++i) arena.base()[i * page] = std::byte{1};
  EXPECT_EQ(resident_bytes(arena), 4 * page);
  ASSERT_EQ(::madvise(arena.base() + page, static_cast<std::size_t>(page), MADV_DONTNEED), 0);
  EXPECT_EQ(resident_bytes(arena), 3 * page);
}

}  // namespace
}  // namespace strata::train
