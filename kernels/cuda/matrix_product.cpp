#include "kernels/cuda/matrix_product.h"

#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/product_library.h"

namespace strata::cuda {

void matrix_product(kernels::Stream& stream, const MatrixProduct& product,
                    std::span<std::byte> workspace) {
  ProductLibrary* library = cuda(stream).products();
  if (library != nullptr && library->multiply(cuda(stream).get(), product, workspace)) return;
  tiled_product(stream, product);
}

}  // namespace strata::cuda
