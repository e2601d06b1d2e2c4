#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/step_kernels.h"

namespace strata::kernels {

void copy_kernel(Stream& stream, const KernelCall& call) {
  const Tensor& in = call.inputs[0];
  const Tensor& out = call.outputs[0];
  for_each_run(&cpu(stream).pool(), {&in, &out},
               [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                 std::memcpy(element(out, row, col), element(in, row, col),
                             static_cast<std::size_t>(count * size_of(out.dtype())));
               });
}

}  // namespace strata::kernels
