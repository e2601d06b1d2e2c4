#include "core/populate_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace strata {
namespace {

class PopulatePages : public testing::Test {
 protected:
  /// More than a piece for each of two threads.
  static constexpr std::size_t kBytes = (std::size_t{512} << 20) + 12'288;

  PopulatePages()
      : memory_(static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
                kBytes) {}
  ~PopulatePages() override { ::munmap(memory_.data(), memory_.size()); }

  [[nodiscard]] std::ptrdiff_t present() const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages(memory_.size() / page);
    EXPECT_EQ(::mincore(memory_.data(), memory_.size(), pages.data()), 0);
    return std::ranges::count_if(pages, [](unsigned char is) { return (is & 1) != 0; });
  }

  std::span<std::byte> memory_;
};

TEST_F(PopulatePages, AllArePresentAfterwardsAndKeepTheirContent) {
  ASSERT_NE(static_cast<void*>(memory_.data()), MAP_FAILED);
  memory_[70'000] = std::byte{7};
  ASSERT_LT(present(), 1000);
  ASSERT_EQ(populate_pages(memory_), 0);
  EXPECT_EQ(present(), static_cast<std::ptrdiff_t>(kBytes) / ::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(memory_[70'000], std::byte{7});
  EXPECT_EQ(memory_.back(), std::byte{0});
}

TEST_F(PopulatePages, AHoleIsRefused) {
  ASSERT_EQ(::munmap(memory_.data() + 8192, 4096), 0);
  EXPECT_EQ(populate_pages(memory_), ENOMEM);
}

TEST_F(PopulatePages, NothingIsNoWork) { EXPECT_EQ(populate_pages({}), 0); }

}  // namespace
}  // namespace strata
