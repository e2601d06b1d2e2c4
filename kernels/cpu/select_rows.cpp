#include "kernels/ops/select_rows.h"

#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/ranges.h"

namespace strata::kernels {

void select_rows_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &x = call.inputs[0], &to = call.outputs[0];
  const auto* index = call.inputs[1].row<std::int32_t>();
  cpu(stream).pool().parallel_for(to.rows(), [&](std::int64_t r, int) {
    STRATA_CHECK(index[r] >= 0 && index[r] < x.rows(), "row", index[r], "of", x.rows());
    std::memcpy(element(to, r, 0), element(x, index[r], 0),
                static_cast<std::size_t>(x.cols() * size_of(x.dtype())));
  });
}

}  // namespace strata::kernels
