#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace strata::comm {

/// Copies, unless source and target are the same (a piece already in place) or `bytes` is 0; then
/// the pointers may be null.
inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace strata::comm
