#include "kernels/initialize.h"

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/step_kernels.h"

namespace strata::kernels {

void initialize_kernel(Stream& stream, const KernelCall& call) {
  constexpr std::int64_t kElements = 1024;  // on the stack
  const Tensor& out = call.outputs[0];
  const InitialValues initializer = InitialValues::from(call.attributes);
  const std::int64_t first = call.attributes.integer("first", 0);
  for_each_range(&cpu(stream).pool(), out.elements(), kTaskElements,
                 [&](std::int64_t begin, std::int64_t end) {
                   float values[kElements];
                   for (; begin < end; begin += kElements) {
                     const std::int64_t count = std::min(kElements, end - begin);
                     const std::span<float> chunk(values, static_cast<std::size_t>(count));
                     initial_values(initializer, first + begin, chunk);
                     store_initial_values(chunk, out.dtype(), element(out, 0, begin));
                   }
                 });
}

}  // namespace strata::kernels
