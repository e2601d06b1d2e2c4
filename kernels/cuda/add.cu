// kernels/add.h on CUDA.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"

namespace strata::cuda {
namespace {

template <typename T>
struct AddArguments {
  RowShape shape;
  RowPointer<const T> a, b;
  RowPointer<T> sum;
};

template <typename T, int N>
struct Add {
  static constexpr int kWidth = N, kPacks = packs_per_thread(N, 2);
  using Arguments = AddArguments<T>;
  struct Operands {
    Pack<T, N> a, b;
  };
  static STRATA_DEVICE Operands read(const Arguments& x, Place at) {
    return {read_pack<N>(x.a, at), read_pack<N>(x.b, at)};
  }
  static STRATA_DEVICE void write(const Arguments& x, Place at, const Operands& pack) {
    float a[N], b[N];
    to_floats(a, pack.a);
    to_floats(b, pack.b);
#pragma unroll
    for (int i = 0; i < N; ++i) a[i] += b[i];
    store_floats(x.sum, at.row, at.col, a);
  }
};

}  // namespace

void add(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &a = call.inputs[0], &b = call.inputs[1], &sum = call.outputs[0];
  with_float_type(a.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = pack_elements(sizeof(T));
    with_width<kWide>(packs_fit(kWide, {&a, &b, &sum}), [&](auto width) {
      launch_elementwise<Add<T, width()>>(stream, {row_shape({&a, &b, &sum}), rows_of<const T>(a),
                                                   rows_of<const T>(b), rows_of<T>(sum)});
    });
  });
}

}  // namespace strata::cuda
