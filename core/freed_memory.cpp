#include "core/freed_memory.h"

#include <malloc.h>

#include <limits>

namespace strata {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMiB = 1 << 20;
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the most that it takes
  mallopt(M_TOP_PAD, 64 * kMiB);
#endif
}

}  // namespace strata
