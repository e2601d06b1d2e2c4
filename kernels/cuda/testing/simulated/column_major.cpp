#include "kernels/cuda/testing/simulated/column_major.h"

#include "kernels/cpu/convert.h"

namespace strata::cuda {
namespace {

double read(DType type, const std::byte* data, std::int64_t at) {
  float value = 0;
  kernels::convert_range(type, data + at * size_of(type), DType::f32,
                         reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

}  // namespace

void column_major_product(const LibraryProduct& p, const ColumnMajorOperands& x) {
  for (std::int64_t j = 0; j < p.n; ++j)
    for (std::int64_t i = 0; i < p.m; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        const std::int64_t first =
            p.first_transposed ? l + i * p.first_stride : i + l * p.first_stride;
        const std::int64_t second =
            p.second_transposed ? j + l * p.second_stride : l + j * p.second_stride;
        sum += read(p.operands, x.first, first) * read(p.operands, x.second, second);
      }
      if (p.bias) sum += read(*p.bias, x.bias, i);
      const std::int64_t at = i + j * p.result_stride;
      if (p.accumulate) sum += read(p.result, x.result, at);
      const auto rounded = static_cast<float>(sum);
      kernels::convert_range(DType::f32, reinterpret_cast<const std::byte*>(&rounded), p.result,
                             x.result + at * size_of(p.result), 1);
    }
}

}  // namespace strata::cuda
