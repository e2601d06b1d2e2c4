// Implements kernels/ops/convert.h on CUDA. Each operand moves once, the one of the larger type in
// packs of 16 bytes.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"

namespace strata::cuda {
namespace {

template <typename From, typename To>
struct ConvertArguments {
  RowShape shape;
  RowPointer<const From> x;
  RowPointer<To> y;
};

template <typename From, typename To, bool kMaster, int N>
struct Convert {
  static constexpr int kWidth = N, kPacks = 4;  // needs few registers besides what it reads
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

}  // namespace strata::cuda
