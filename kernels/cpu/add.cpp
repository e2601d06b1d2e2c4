#include "kernels/ops/add.h"

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/row_parts.h"

namespace strata::kernels {

// One addition per three memory accesses: the compiler's baseline vectors are wide enough.
void add_kernel(Stream& stream, const KernelCall& call) {
  const auto body = [](const float* const* in, float* const* out, const RowPart& part) {
    for (std::int64_t i = 0; i < part.count; ++i) out[0][i] = in[0][i] + in[1][i];
  };
  for_each_row_part(cpu(stream).pool(), {call.inputs[0], call.inputs[1]}, {call.outputs[0]}, body);
}

}  // namespace strata::kernels
