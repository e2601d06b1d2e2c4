// Implements kernels/ops/dropout.h and kernels/ops/residual_add.h on CUDA. Random numbers take ten
// instructions per element, everything about 25, for which the memory of an H200 just leaves time
// at 4 bytes per element (dropout, 16-bit); residual_add moves 6 bytes.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/random.cuh"

namespace strata::cuda {
namespace {

template <typename T>
struct DropArguments {
  RowShape shape;
  RowPointer<const T> x, delta;  ///< only residual_add has x
  RowPointer<T> y;
  DropoutArguments dropout;
};

template <typename T, int N>
struct Drop {
  static constexpr int kWidth = N, kPacks = packs_per_thread(N, 1);
  using Arguments = DropArguments<T>;
  struct Operands {
    Pack<T, N> delta;
    DropoutPlace random;
  };
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) {
    return {read_pack<N>(a.delta, at), dropout_place(a.dropout, at.row, at.col)};
  }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& pack) {
    float delta[N];
    to_floats(delta, pack.delta);
    drop(delta, a.dropout, pack.random);
    store_floats(a.y, at.row, at.col, delta);
  }
};

template <typename T, int N>
struct AddDropped {
  static constexpr int kWidth = N, kPacks = packs_per_thread(N, 2);
  using Arguments = DropArguments<T>;
  struct Operands {
    Pack<T, N> x, delta;
    DropoutPlace random;
  };
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) {
    return {read_pack<N>(a.x, at), read_pack<N>(a.delta, at),
            dropout_place(a.dropout, at.row, at.col)};
  }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& pack) {
    float x[N], delta[N];
    to_floats(x, pack.x);
    to_floats(delta, pack.delta);
    drop(delta, a.dropout, pack.random);
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] += delta[i];
    store_floats(a.y, at.row, at.col, x);
  }
};

}  // namespace

// Adjacent rows are not joined into one, so that each pack lies in one sample.
void dropout(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &x = call.inputs[0], &y = call.outputs[0];
  const RowShape shape{x.rows(), x.cols()};
  with_float_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = pack_elements(sizeof(T));
    with_width<kWide>(packs_fit(kWide, shape, {&x, &y}), [&](auto width) {
      launch_elementwise<Drop<T, width()>>(
          stream, {shape,
                   {},
                   rows_of<const T>(x),
                   rows_of<T>(y),
                   dropout_arguments(call.inputs[1], call.attributes, x.cols())});
    });
  });
}

void residual_add(kernels::Stream& stream, const kernels::KernelCall& call) {
  if (call.attributes.real("p", 0) == 0) return add(stream, call);
  const kernels::Tensor &x = call.inputs[0], &delta = call.inputs[1], &y = call.outputs[0];
  const RowShape shape{x.rows(), x.cols()};
  with_float_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = pack_elements(sizeof(T));
    with_width<kWide>(packs_fit(kWide, shape, {&x, &delta, &y}), [&](auto width) {
      launch_elementwise<AddDropped<T, width()>>(
          stream, {shape, rows_of<const T>(x), rows_of<const T>(delta), rows_of<T>(y),
                   dropout_arguments(call.inputs[2], call.attributes, x.cols())});
    });
  });
}

}  // namespace strata::cuda
