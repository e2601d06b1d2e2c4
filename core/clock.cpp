#include "core/clock.h"

#include <time.h>

#include "core/check.h"

namespace strata {
namespace {

std::int64_t nanoseconds_of(clockid_t clock) {
  timespec now{};
  STRATA_CHECK(::clock_gettime(clock, &now) == 0);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::int64_t monotonic_ns() { return nanoseconds_of(CLOCK_MONOTONIC); }
std::int64_t boot_time_ns() { return nanoseconds_of(CLOCK_BOOTTIME); }

}  // namespace strata
