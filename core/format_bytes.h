// Amounts of memory as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace strata {

/// "1.23 GiB", "456.00 MiB", "789 bytes".
std::string format_bytes(double bytes);
inline std::string format_bytes(std::int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

}  // namespace strata
