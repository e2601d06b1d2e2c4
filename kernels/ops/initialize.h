// Makes the initial values of parameters where they lie.
//
// attributes  dtype, rows; deviation (default 0): the elements are normal numbers of mean 0 and
//             this deviation; else constant (default 0): they all are this number. With a
//             deviation: seed_high, seed_low, tensor_high, tensor_low, two 64-bit numbers in words
//             of 32 bits (attributes hold 53); first: which element of the tensor is the first here
// outputs     values [rows], any float type; or i16: by how much each was rounded to bf16, which
//             is the other half of a packed master (optimizer_operands.h)
//
// Element i of a tensor is made of normal number i % 4 of block i / 4 of random words (philox.h)
// under the seed and the tensor's key, so its value does not depend on the pieces in which a tensor
// is made. It is computed in fp64, rounded to fp32, and then rounded as a master becomes a
// parameter (float16.h). Bits are the same on all backends.
#pragma once

#include "kernels/ops/initial_values.h"
#include "kernels/ops/operation.h"

namespace strata::kernels {

const Operation& initialize_operation();

/// One tensor's initializer.
struct TensorInitializer {
  std::int64_t seed = 0;
  std::uint64_t tensor = 0;  ///< key of the tensor; its lower 56 bits count
  double deviation = 0;
  double constant = 0;

  /// Returns the attributes with which `initialize` makes elements [first, first + count).
  [[nodiscard]] Attributes attributes(DType dtype, std::int64_t first, std::int64_t count) const;
};

}  // namespace strata::kernels
