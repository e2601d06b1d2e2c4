#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/step_kernels.h"

namespace strata::kernels {

void fill_zero_kernel(Stream& stream, const KernelCall& call) {
  for (const Tensor& out : call.outputs) {
    const std::int64_t size = size_of(out.dtype());
    for_each_range(&cpu(stream).pool(), out.elements(), kTaskElements,
                   [&](std::int64_t begin, std::int64_t end) {
                     std::memset(out.data + begin * size, 0,
                                 static_cast<std::size_t>((end - begin) * size));
                   });
  }
}

}  // namespace strata::kernels
