// Which algorithm multiplies which matrices: part of what a run's bits depend on. The table is a
// file that stays with a checkpoint, and what rank 0 sends to the others.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/cuda/library_product.h"

namespace strata::cuda {

/// An algorithm of cuBLASLt, in the form in which that library exchanges them.
struct ProductAlgorithm {
  std::array<std::uint64_t, 8> words{};
  std::int64_t workspace_bytes = 0;
  bool operator==(const ProductAlgorithm&) const = default;
};

/// Without an algorithm our own kernels multiply: the library offered none that would do.
struct ProductChoice {
  std::optional<ProductAlgorithm> algorithm = {};
  double microseconds = 0;  ///< median of one product; 0: taken without timing
  bool operator==(const ProductChoice&) const = default;
};

/// Choices hold on such machines alone.
struct ProductMachine {
  std::string gpu;           ///< "NVIDIA H200"
  std::int64_t library = 0;  ///< version of cuBLASLt, 130100 for 13.1.0
  bool tf32 = false;         ///< fp32 operands may be rounded to TF32
  auto operator<=>(const ProductMachine&) const = default;
};

using ProductChoices = std::map<LibraryProduct, ProductChoice>;
using ProductTable = std::map<ProductMachine, ProductChoices>;

/// JSON, the same text for equal tables.
std::string to_json(const ProductTable& table);

/// Throws DataError naming `file`, line and member for anything that to_json does not write:
/// unknown or missing members, values out of range (more workspace than is planned for the product
/// among them), a product or a machine that occurs twice.
ProductTable product_table_from_json(std::string_view text, const std::string& file);

}  // namespace strata::cuda
