#include "core/populate_pages.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <vector>

namespace strata {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 20;
constexpr std::size_t kMostThreads = 16;

std::size_t usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace

int populate_pages(std::span<std::byte> memory) {
  // Huge pages mean fewer TLB misses; a kernel without them refuses, which changes nothing.
  (void)::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
  std::atomic<std::size_t> next = 0;
  std::atomic<int> failed = 0;
  const auto work = [&] {
    for (;;) {
      const std::size_t begin = next.fetch_add(kPiece);
      if (begin >= memory.size() || failed != 0) return;
      const std::size_t bytes = std::min(kPiece, memory.size() - begin);
      while (::madvise(memory.data() + begin, bytes, MADV_POPULATE_WRITE) != 0)
        if (errno != EINTR && errno != EAGAIN) {
          failed = errno;
          return;
        }
    }
  };
  const std::size_t threads =
      std::min({usable_processors(), kMostThreads, (memory.size() + kPiece - 1) / kPiece});
  std::vector<std::jthread> others;
  try {
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // No thread is to be had; those that started and this one do the work.
  }
  work();
  others.clear();
  return failed == EINVAL ? 0 : failed.load();
}

}  // namespace strata
