// Sizes and memory aligned as the disk requires.
#pragma once

#include <cstdint>

#include "core/aligned_memory.h"
#include "runtime/program/arena_alignment.h"

namespace strata::offload {

using strata::AlignedMemory;
static_assert(AlignedMemory::kAlignment == runtime::kDiskAlignment);

constexpr std::int64_t round_down(std::int64_t bytes) {
  return bytes / runtime::kDiskAlignment * runtime::kDiskAlignment;
}
constexpr std::int64_t round_up(std::int64_t bytes) {
  return round_down(bytes + runtime::kDiskAlignment - 1);
}

}  // namespace strata::offload
