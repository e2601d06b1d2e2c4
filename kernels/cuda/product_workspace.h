// The scratch of a matrix product, for planning and for the library that may use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/device/tensor.h"

namespace strata::cuda {

/// The alignment in bytes that libraries want of their scratch; workspaces have less.
inline constexpr std::uintptr_t kLibraryAlignment = 256;

/// The bytes of scratch that a library gets for a result of so many elements: 32 fp32 partial sums
/// of all of it, but at most 32 MiB, since cuBLASLt finds nothing faster with more.
constexpr std::int64_t library_bytes(std::int64_t result_elements) {
  return std::min(std::int64_t{32} << 20, (result_elements * 4 * 32 + 255) / 256 * 256);
}

/// The bytes to plan for matrix_product: library_bytes and what aligning takes.
constexpr std::int64_t product_workspace_bytes(std::int64_t result_elements) {
  return library_bytes(result_elements) + static_cast<std::int64_t>(kLibraryAlignment);
}

/// The aligned part of a workspace of product_workspace_bytes.
inline std::span<std::byte> aligned_workspace(std::span<std::byte> workspace) {
  const auto past = reinterpret_cast<std::uintptr_t>(workspace.data()) % kLibraryAlignment;
  const auto skipped = static_cast<std::size_t>((kLibraryAlignment - past) % kLibraryAlignment);
  return skipped > workspace.size() ? std::span<std::byte>() : workspace.subspan(skipped);
}

}  // namespace strata::cuda
