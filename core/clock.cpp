#include "core/clock.h"

#include <time.h>

#include <array>

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
std::int64_t coarse_monotonic_ns() { return nanoseconds_of(CLOCK_MONOTONIC_COARSE); }
std::int64_t boot_time_ns() { return nanoseconds_of(CLOCK_BOOTTIME); }

std::string utc_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm fields{};
  std::array<char, 32> text{};
  if (::gmtime_r(&seconds, &fields) == nullptr ||
      ::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &fields) == 0)
    return "";
  return text.data();
}

}  // namespace strata
