// Scratch of a matrix product: for planning and for the library that may use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/device/tensor.h"

namespace strata::cuda {

/// Libraries want their scratch at such addresses; arenas align less.
inline constexpr std::uintptr_t kLibraryAlignment = 256;

/// Scratch that a library gets for a result of so many elements: 32 partial sums of all of it, at
/// most the 32 MiB beyond which cuBLASLt finds nothing faster.
constexpr std::int64_t library_bytes(std::int64_t result_elements) {
  return std::min(std::int64_t{32} << 20, (result_elements * 4 * 32 + 255) / 256 * 256);
}

/// The same with what aligning takes: bytes to plan for matrix_product.
constexpr std::int64_t product_workspace_bytes(std::int64_t result_elements) {
  return library_bytes(result_elements) + static_cast<std::int64_t>(kLibraryAlignment);
}

/// The aligned part of a workspace that was planned so.
inline std::span<std::byte> aligned_workspace(std::span<std::byte> workspace) {
  const auto past = reinterpret_cast<std::uintptr_t>(workspace.data()) % kLibraryAlignment;
  const auto skipped = static_cast<std::size_t>((kLibraryAlignment - past) % kLibraryAlignment);
  return skipped > workspace.size() ? std::span<std::byte>() : workspace.subspan(skipped);
}

}  // namespace strata::cuda
