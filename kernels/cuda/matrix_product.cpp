#include "kernels/cuda/matrix_product.h"

namespace strata::cuda {

void matrix_product(kernels::Stream& stream, const MatrixProduct& product, std::span<std::byte>) {
  tiled_product(stream, product);
}

}  // namespace strata::cuda
