// Implements matrix_product for the simulation, by our own kernels; the stream records products.
#include "kernels/cuda/matrix_product.h"
#include "kernels/cuda/product_workspace.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"

namespace strata::cuda {

void matrix_product(kernels::Stream& stream, const MatrixProduct& product,
                    std::span<std::byte> workspace) {
  const std::int64_t planned = product_workspace_bytes(product.c.elements());
  STRATA_CHECK(static_cast<std::int64_t>(workspace.size()) >= planned, workspace.size(), planned);
  simulated(stream).saw_product(product);
  tiled_product(stream, product);
}

}  // namespace strata::cuda
