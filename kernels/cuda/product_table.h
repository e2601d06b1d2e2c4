// The table of algorithms for matrix products, on which a run's bits depend. It is stored with a
// checkpoint, and rank 0 sends it to the others.
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

/// An algorithm of cuBLASLt: `words` are the content of its cublasLtMatmulAlgo_t.
struct ProductAlgorithm {
  std::array<std::uint64_t, 8> words{};
  std::int64_t workspace_bytes = 0;
  bool operator==(const ProductAlgorithm&) const = default;
};

/// The choice for one product; our own kernels multiply if the library has no algorithm that does.
struct ProductChoice {
  std::optional<ProductAlgorithm> algorithm = {};
  double microseconds = 0;  ///< median time of one product; 0 if it was not measured
  bool operator==(const ProductChoice&) const = default;
};

/// The kind of machine for which choices hold.
struct ProductMachine {
  std::string gpu;           ///< "NVIDIA H200"
  std::int64_t library = 0;  ///< version of cuBLASLt, 130100 for 13.1.0
  bool tf32 = false;         ///< fp32 operands may be rounded to TF32
  auto operator<=>(const ProductMachine&) const = default;
};

using ProductChoices = std::map<LibraryProduct, ProductChoice>;
using ProductTable = std::map<ProductMachine, ProductChoices>;

/// Writes the table as JSON; equal tables give the same text.
std::string to_json(const ProductTable& table);

/// Reads what to_json writes. Throws DataError, which names `file`, line and member, for anything
/// else: unknown or missing members, values out of range (also more workspace than is planned for
/// the product), a product or a machine that occurs twice.
ProductTable product_table_from_json(std::string_view text, const std::string& file);

}  // namespace strata::cuda
