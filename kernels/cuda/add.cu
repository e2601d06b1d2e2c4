// kernels/add.h on CUDA.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/rows.cuh"

namespace strata::cuda {
namespace {

template <typename T>
struct AddArguments {
  RowPointer<const T> a, b;
  RowPointer<T> sum;
  RowShape shape;
};

template <typename T, int N>
struct Add {
  static constexpr int kThreads = kElementwiseThreads;
  static STRATA_DEVICE void run(const AddArguments<T>& x) {
    std::int64_t row, col;
    if (!my_pack<N>(x.shape, row, col)) return;
    float a[N], b[N];
    load_floats(a, x.a, row, col);
    load_floats(b, x.b, row, col);
#pragma unroll
    for (int i = 0; i < N; ++i) a[i] += b[i];
    store_floats(x.sum, row, col, a);
  }
};

}  // namespace

void add(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &a = call.inputs[0], &b = call.inputs[1], &sum = call.outputs[0];
  with_float_type(a.dtype(), [&](auto element) {
    using T = decltype(element);
    const AddArguments<T> arguments{rows_of<const T>(a), rows_of<const T>(b), rows_of<T>(sum),
                                    row_shape({&a, &b, &sum})};
    constexpr int kWide = pack_elements(sizeof(T));
    const std::int64_t elements = arguments.shape.rows * arguments.shape.cols;
    if (packs_fit(kWide, {&a, &b, &sum}))
      launch<Add<T, kWide>>(stream, elementwise_launch(elements / kWide), arguments);
    else
      launch<Add<T, 1>>(stream, elementwise_launch(elements), arguments);
  });
}

}  // namespace strata::cuda
