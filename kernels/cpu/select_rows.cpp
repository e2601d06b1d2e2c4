#include "kernels/ops/select_rows.h"

#include <cstring>
#include <functional>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"

namespace strata::kernels {

void select_rows_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &x = call.inputs[0], &to = call.outputs[0];
  const auto* index = call.inputs[1].row<std::int32_t>();
  const std::int64_t size = size_of(x.dtype());
  const auto body = [&](std::int64_t r, int) {
    STRATA_CHECK(index[r] >= 0 && index[r] < x.rows(), "row", index[r], "of", x.rows());
    std::memcpy(to.data + r * to.row_stride() * size, x.data + index[r] * x.row_stride() * size,
                static_cast<std::size_t>(x.cols() * size));
  };
  cpu(stream).pool().parallel_for(to.rows(), std::ref(body));
}

}  // namespace strata::kernels
