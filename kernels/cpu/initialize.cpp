#include "kernels/ops/initialize.h"

#include <algorithm>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/initial_values.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/math/float16.h"

namespace strata::kernels {

void store_initial_values(std::span<const float> values, DType dtype, std::byte* to) {
  if (dtype == DType::i16) {
    auto* remainders = reinterpret_cast<std::int16_t*>(to);
    for (std::size_t i = 0; i < values.size(); ++i) remainders[i] = master_remainder(values[i]);
    return;
  }
  convert_range(DType::f32, reinterpret_cast<const std::byte*>(values.data()), dtype, to,
                static_cast<std::int64_t>(values.size()), Rounding::master);
}

void initial_values(const InitialValues& initializer, std::int64_t first, std::span<float> values) {
  if (initializer.deviation == 0) {
    std::fill(values.begin(), values.end(), initializer.constant);
    return;
  }
  NormalBlock numbers{};
  std::int64_t block = -1;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::int64_t i = first + static_cast<std::int64_t>(k);
    if (i / 4 != block) {
      block = i / 4;
      numbers = normal_numbers(initializer.source.words(static_cast<std::uint64_t>(block)));
    }
    values[k] = initializer.scaled(numbers.v[i % 4]);
  }
}

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
