// The scratch of a collective, handed out from its front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/seat.h"
#include "core/check.h"

namespace strata::comm {

/// Takes `bytes`, padded to a cache line, from the front of `free`, which must have them.
inline std::byte* take_piece(std::span<std::byte>& free, std::int64_t bytes) {
  const auto padded = static_cast<std::size_t>(padded_piece(bytes));
  STRATA_CHECK(padded <= free.size(), "workspace has", free.size(), "bytes left; needs", padded);
  std::byte* taken = free.data();
  free = free.subspan(padded);
  return taken;
}

}  // namespace strata::comm
