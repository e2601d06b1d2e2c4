// Implements kernels/ops/add.h and kernels/ops/accumulate.h on CUDA. Sums are made and scaled in
// fp32, and rounded once, to the type of the first operand.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"

namespace strata::cuda {
namespace {

template <typename A, typename B>
struct AddArguments {
  RowShape shape;
  RowPointer<const A> a;
  RowPointer<const B> b;
  RowPointer<A> sum;
  float scale;  // 1 changes no bit
};

template <typename A, typename B, int N>
struct Add {
  static constexpr int kWidth = N, kPacks = packs_per_thread(N, 2);
  using Arguments = AddArguments<A, B>;
  struct Operands {
    Pack<A, N> a;
    Pack<B, N> b;
  };
  static STRATA_DEVICE Operands read(const Arguments& x, Place at) {
    return {read_pack<N>(x.a, at), read_pack<N>(x.b, at)};
  }
  static STRATA_DEVICE void write(const Arguments& x, Place at, const Operands& pack) {
    float a[N], b[N];
    to_floats(a, pack.a);
    to_floats(b, pack.b);
#pragma unroll
    for (int i = 0; i < N; ++i) a[i] = (a[i] + b[i]) * x.scale;
    store_floats(x.sum, at.row, at.col, a);
  }
};

template <typename A, typename B>
void launch_add(kernels::Stream& stream, const kernels::KernelCall& call, float scale) {
  const kernels::Tensor &a = call.inputs[0], &b = call.inputs[1], &sum = call.outputs[0];
  constexpr int kWide = kSharedWidth<A, B>;
  with_width<kWide>(packs_fit(kWide, {&a, &b, &sum}), [&](auto width) {
    launch_elementwise<Add<A, B, width()>>(stream, {row_shape({&a, &b, &sum}), rows_of<const A>(a),
                                                    rows_of<const B>(b), rows_of<A>(sum), scale});
  });
}

}  // namespace

void add(kernels::Stream& stream, const kernels::KernelCall& call) {
  with_float_type(call.inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    launch_add<T, T>(stream, call, 1);
  });
}

void accumulate(kernels::Stream& stream, const kernels::KernelCall& call) {
  const auto scale = static_cast<float>(call.attributes.real("scale", 1));
  with_float_type(call.inputs[0].dtype(), [&](auto sum) {
    with_float_type(call.inputs[1].dtype(), [&](auto element) {
      launch_add<decltype(sum), decltype(element)>(stream, call, scale);
    });
  });
}

}  // namespace strata::cuda
