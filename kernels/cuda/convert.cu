// kernels/convert.h and kernels/accumulate.h on CUDA: each operand moves once, with packs of 16
// bytes for the larger element.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"

namespace strata::cuda {
namespace {

/// Elements of a pack that is 16 bytes of the larger type.
template <typename A, typename B>
constexpr int kSharedWidth = pack_elements(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B));

template <typename From, typename To>
struct ConvertArguments {
  RowShape shape;
  RowPointer<const From> x;
  RowPointer<To> y;
};

template <typename From, typename To, bool kMaster, int N>
struct Convert {
  static constexpr int kWidth = N, kPacks = 4;  // holds little but what it reads
  using Arguments = ConvertArguments<From, To>;
  using Operands = Pack<From, N>;
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) { return read_pack<N>(a.x, at); }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& pack) {
    Pack<To, N> converted;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float value = to_float(pack.v[i]);
      if constexpr (kMaster)
        converted.v[i] = {kernels::master_to_bf16(value)};
      else
        converted.v[i] = from_float<To>(value);
    }
    write_pack(a.y, at, converted);
  }
};

template <typename From, typename To, bool kMaster>
void convert_types(kernels::Stream& stream, const kernels::Tensor& x, const kernels::Tensor& y) {
  constexpr int kWide = kSharedWidth<From, To>;
  with_width<kWide>(packs_fit(kWide, {&x, &y}), [&](auto width) {
    launch_elementwise<Convert<From, To, kMaster, width()>>(
        stream, {row_shape({&x, &y}), rows_of<const From>(x), rows_of<To>(y)});
  });
}

template <typename Sum, typename X>
struct AccumulateArguments {
  RowShape shape;
  RowPointer<const Sum> sum;
  RowPointer<const X> x;
  RowPointer<Sum> out;
};

template <typename Sum, typename X, int N>
struct Accumulate {
  static constexpr int kWidth = N, kPacks = packs_per_thread(N, 2);
  using Arguments = AccumulateArguments<Sum, X>;
  struct Operands {
    Pack<Sum, N> sum;
    Pack<X, N> x;
  };
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) {
    return {read_pack<N>(a.sum, at), read_pack<N>(a.x, at)};
  }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& pack) {
    float sum[N], x[N];
    to_floats(sum, pack.sum);
    to_floats(x, pack.x);
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] += x[i];
    store_floats(a.out, at.row, at.col, sum);
  }
};

}  // namespace

void convert(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &x = call.inputs[0], &y = call.outputs[0];
  if (x.dtype() == y.dtype()) return copy(stream, call);
  if (x.dtype() == DType::f32 && y.dtype() == DType::bf16 &&
      call.attributes.integer("master", 0) != 0)
    return convert_types<float, Bf16, true>(stream, x, y);
  with_float_type(x.dtype(), [&](auto from) {
    with_float_type(y.dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      if constexpr (!std::is_same_v<From, To>) convert_types<From, To, false>(stream, x, y);
    });
  });
}

void accumulate(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &sum = call.inputs[0], &x = call.inputs[1], &out = call.outputs[0];
  with_float_type(sum.dtype(), [&](auto sum_element) {
    with_float_type(x.dtype(), [&](auto element) {
      using Sum = decltype(sum_element);
      using X = decltype(element);
      constexpr int kWide = kSharedWidth<Sum, X>;
      with_width<kWide>(packs_fit(kWide, {&sum, &x, &out}), [&](auto width) {
        launch_elementwise<Accumulate<Sum, X, width()>>(
            stream, {row_shape({&sum, &x, &out}), rows_of<const Sum>(sum), rows_of<const X>(x),
                     rows_of<Sum>(out)});
      });
    });
  });
}

}  // namespace strata::cuda
