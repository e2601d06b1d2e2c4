// Implements kernels/ops/copy.h, fill_zero.h and select_rows.h on CUDA. Elements are plain bits,
// moved 16 bytes at a time where alignment allows. The same kernel copies from and to pinned host
// memory, which is mapped into the device's address space.
#include <algorithm>
#include <span>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/predicate.cuh"

namespace strata::cuda {
namespace {

/// `tensor` in units of U, whose size divides its rows and strides.
template <typename U>
RowPointer<U> units_of(const kernels::Tensor& tensor) {
  return {reinterpret_cast<U*>(tensor.data),
          tensor.row_stride() * size_of(tensor.dtype()) / static_cast<std::int64_t>(sizeof(U))};
}

template <typename U>
RowShape unit_shape(const RowShape& elements, DType dtype) {
  return {elements.rows, elements.cols * size_of(dtype) / static_cast<std::int64_t>(sizeof(U))};
}

/// Host: calls body(unit, width) with packs of four 4-byte units if `fits`, else with single units
/// of the element's size.
template <typename Body>
void with_units(DType dtype, bool fits, const Body& body) {
  if (fits) return body(std::uint32_t{}, std::integral_constant<int, 4>{});
  constexpr std::integral_constant<int, 1> kOne;
  switch (size_of(dtype)) {
    case 1:
      return body(std::uint8_t{}, kOne);
    case 2:
      return body(std::uint16_t{}, kOne);
    case 4:
      return body(std::uint32_t{}, kOne);
    default:
      return body(std::uint64_t{}, kOne);
  }
}

int elements_of_16_bytes(DType dtype) { return static_cast<int>(16 / size_of(dtype)); }

template <typename U>
struct CopyArguments {
  RowShape shape;
  RowPointer<const U> from;
  RowPointer<U> to;
  const std::uint32_t* predicate;
};

/// Reads four packs per thread, or two with a predicate, since the registers that hold the
/// predicate's address are then missing.
template <typename U, int N, bool kPredicated>
struct Copy {
  static constexpr int kWidth = N, kPacks = kPredicated ? 2 : 4;
  using Arguments = CopyArguments<U>;
  using Operands = Pack<U, N>;
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) {
    return read_pack<N>(a.from, at);
  }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& pack) {
    if (!kPredicated || holds(a.predicate)) write_pack(a.to, at, pack);
  }
};

template <typename U>
struct FillRowsArguments {
  RowShape shape;
  RowPointer<U> to;
};

/// Fills one tensor with zeros, and leaves the bytes between its rows alone.
template <typename U, int N>
struct FillRows {
  static constexpr int kWidth = N, kPacks = 4;
  using Arguments = FillRowsArguments<U>;
  struct Operands {};
  static STRATA_DEVICE Operands read(const Arguments&, Place) { return {}; }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands&) {
    write_pack(a.to, at, Pack<U, N>{});
  }
};

/// The largest number of tensors that one launch fills.
constexpr std::size_t kFilledParts = 16;

template <typename U>
struct FillArguments {
  RowShape shape;  ///< one row per part, as long as the longest part
  U* parts[kFilledParts];
  std::int64_t units[kFilledParts];
};

template <typename U, int N>
struct FillZero {
  static constexpr int kWidth = N, kPacks = 4;
  using Arguments = FillArguments<U>;
  struct Operands {};
  static STRATA_DEVICE Operands read(const Arguments&, Place) { return {}; }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands&) {
    if (at.col < a.units[at.row]) store<N>(a.parts[at.row] + at.col, Pack<U, N>{});
  }
};

template <typename U>
struct SelectArguments {
  RowShape shape;  ///< that of the output
  RowPointer<const U> from;
  std::int64_t from_rows;
  const std::int32_t* index;
  RowPointer<U> to;
};

template <typename U, int N>
struct SelectRows {
  static constexpr int kWidth = N, kPacks = 2;
  using Arguments = SelectArguments<U>;
  using Operands = Pack<U, N>;
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) {
    const std::int32_t row = a.index[at.row];
    require(row >= 0 && row < a.from_rows);
    return read_pack<N>(a.from, {row, at.col});
  }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& pack) {
    write_pack(a.to, at, pack);
  }
};

/// Fills at most kFilledParts parts in one launch.
void fill_parts(kernels::Stream& stream, std::span<const kernels::Tensor> parts) {
  const DType dtype = parts[0].dtype();
  const bool fits = std::ranges::all_of(parts, [&](const kernels::Tensor& part) {
    return packs_fit(elements_of_16_bytes(dtype), {&part});
  });
  with_units(dtype, fits, [&](auto unit, auto width) {
    using U = decltype(unit);
    FillArguments<U> arguments{{static_cast<std::int64_t>(parts.size()), 0}, {}, {}};
    for (std::size_t k = 0; k < parts.size(); ++k) {
      arguments.parts[k] = units_of<U>(parts[k]).data;
      arguments.units[k] = unit_shape<U>(row_shape({&parts[k]}), dtype).cols;
      arguments.shape.cols = std::max(arguments.shape.cols, arguments.units[k]);
    }
    launch_elementwise<FillZero<U, width()>>(stream, arguments);
  });
}

}  // namespace

void copy(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &x = call.inputs[0], &y = call.outputs[0];
  const DType dtype = x.dtype();
  with_units(dtype, packs_fit(elements_of_16_bytes(dtype), {&x, &y}), [&](auto unit, auto width) {
    using U = decltype(unit);
    const CopyArguments<U> arguments{unit_shape<U>(row_shape({&x, &y}), dtype),
                                     units_of<const U>(x), units_of<U>(y), call.predicate};
    if (call.predicate != nullptr)
      launch_elementwise<Copy<U, width(), true>>(stream, arguments);
    else
      launch_elementwise<Copy<U, width(), false>>(stream, arguments);
  });
}

void fill_rows(kernels::Stream& stream, const kernels::Tensor& to) {
  const DType dtype = to.dtype();
  with_units(dtype, packs_fit(elements_of_16_bytes(dtype), {&to}), [&](auto unit, auto width) {
    using U = decltype(unit);
    launch_elementwise<FillRows<U, width()>>(
        stream, {unit_shape<U>(row_shape({&to}), dtype), units_of<U>(to)});
  });
}

void fill_zero(kernels::Stream& stream, const kernels::KernelCall& call) {
  if (call.outputs.size() == 1) return fill_rows(stream, call.outputs[0]);
  for (std::size_t first = 0; first < call.outputs.size(); first += kFilledParts)
    fill_parts(stream,
               call.outputs.subspan(first, std::min(kFilledParts, call.outputs.size() - first)));
}

void select_rows(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &x = call.inputs[0], &index = call.inputs[1], &y = call.outputs[0];
  const DType dtype = x.dtype();
  const int pack = elements_of_16_bytes(dtype);
  const bool fits = packs_fit(pack, {x.rows(), x.cols()}, {&x}) && packs_fit(pack, {&y});
  with_units(dtype, fits, [&](auto unit, auto width) {
    using U = decltype(unit);
    launch_elementwise<SelectRows<U, width()>>(
        stream, {unit_shape<U>({y.rows(), y.cols()}, dtype), units_of<const U>(x), x.rows(),
                 index.row<const std::int32_t>(), units_of<U>(y)});
  });
}

}  // namespace strata::cuda
