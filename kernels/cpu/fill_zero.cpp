#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/step_kernels.h"

namespace strata::kernels {

void fill_zero_kernel(Stream& stream, const KernelCall& call) {
  const Tensor& out = call.outputs[0];
  for_each_run(&cpu(stream).pool(), {&out},
               [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                 std::memset(element(out, row, col), 0,
                             static_cast<std::size_t>(count * size_of(out.dtype())));
               });
}

}  // namespace strata::kernels
