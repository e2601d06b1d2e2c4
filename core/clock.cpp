#include "core/clock.h"

#include <time.h>

#include "core/check.h"

namespace strata {

std::int64_t monotonic_ns() {
  timespec now{};
  STRATA_CHECK(::clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace strata
