#include "core/freed_memory.h"

#include <malloc.h>

#include <limits>

namespace strata {
namespace {

constexpr int kMiB = 1 << 20;

}  // namespace

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the most that it takes
  mallopt(M_TOP_PAD, 64 * kMiB);
#endif
}

void return_freed_memory() {
#ifdef __GLIBC__
  // Setting either one stops the C library from raising both, up to 64 MiB, as large blocks are
  // freed.
  mallopt(M_MMAP_THRESHOLD, kMiB / 4);
  mallopt(M_TRIM_THRESHOLD, kMiB);
#endif
}

void return_memory_freed_so_far() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace strata
