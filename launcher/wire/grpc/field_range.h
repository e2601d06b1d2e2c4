// What fields of control messages may be: what is received is checked.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/run_id.h"

namespace strata::launcher {

// Limits of what is received; far beyond what is sent.
inline constexpr std::int64_t kMostRanks = 1 << 20;
inline constexpr std::int64_t kMostSignal = 128;
inline constexpr std::int64_t kMostCode = 255;
inline constexpr std::int64_t kMostNumber = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kMostInt = std::numeric_limits<std::int32_t>::max();

/// Returns `value` if it lies in the given range.
template <typename Number>
Number within(Number value, std::int64_t least, std::int64_t most, const char* field) {
  if (std::cmp_less(value, least) || std::cmp_greater(value, most))
    throw DataError(fmt::format("field {} of a control message is {}, not from {} to {}", field,
                                value, least, most));
  return value;
}

/// Returns `run_id` if it is the id of a run: folders and files are named by it.
inline const std::string& checked_run_id(const std::string& run_id) {
  if (!is_run_id(run_id)) throw DataError("field run of a control message is no id of a run");
  return run_id;
}

}  // namespace strata::launcher
