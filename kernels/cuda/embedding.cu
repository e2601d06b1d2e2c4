// Implements embedding and position_backward of kernels/ops/embedding.h on CUDA. Both are bound by
// memory: embedding reads one row of each table (positions mostly from the cache) and writes one
// row per token; position_backward reads every sample once.
#include "kernels/ops/embedding.h"

#include "core/check.h"
#include "kernels/cuda/any_floats.cuh"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"

namespace strata::cuda {
namespace {

template <typename A, typename P>
struct EmbeddingArguments {
  RowShape shape;
  const std::int32_t* ids;
  std::int64_t vocabulary;
  RowPointer<const P> table, positions;  ///< positions may be null
  Divisor sequence;
  RowPointer<A> x;
};

template <typename A, typename P, int N>
struct Embedding {
  static constexpr int kWidth = N, kPacks = packs_per_thread(N, 2);
  using Arguments = EmbeddingArguments<A, P>;
  struct Operands {
    Pack<P, N> token, position;
  };
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) {
    const std::int32_t id = a.ids[at.row];
    require(id >= 0 && id < a.vocabulary);
    Operands operands{read_pack<N>(a.table, {id, at.col}), {}};
    if (a.positions.data != nullptr)
      operands.position = read_pack<N>(a.positions, {a.sequence.divide(at.row).remainder, at.col});
    return operands;
  }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& operands) {
    float x[N], position[N];
    to_floats(x, operands.token);
    if (a.positions.data != nullptr) {
      to_floats(position, operands.position);
#pragma unroll
      for (int i = 0; i < N; ++i) x[i] += position[i];
    }
    store_floats(a.x, at.row, at.col, x);
  }
};

template <typename A>
struct PositionArguments {
  RowShape shape;  ///< that of dpositions
  RowPointer<const A> dx;
  std::int64_t rows, sequence;  ///< rows of dx, and of each sample in it
  AnyFloats dpositions;
};

template <typename A, int N>
struct PositionBackward {
  static constexpr int kWidth = N, kPacks = 1;
  using Arguments = PositionArguments<A>;
  struct Operands {
    float sum[N];
  };
  static STRATA_DEVICE Operands read(const Arguments& a, Place at) {
    constexpr int kBatch = 4;  // packs under way
    Operands operands = {};
    if (at.row >= a.sequence) return operands;
#pragma unroll 1
    for (std::int64_t first = at.row; first < a.rows; first += kBatch * a.sequence) {
      Pack<A, N> packs[kBatch] = {};
#pragma unroll
      for (int j = 0; j < kBatch; ++j)
        if (first + j * a.sequence < a.rows)
          packs[j] = read_pack<N>(a.dx, {first + j * a.sequence, at.col});
#pragma unroll
      for (int j = 0; j < kBatch; ++j)
#pragma unroll
        for (int i = 0; i < N; ++i) operands.sum[i] += to_float(packs[j].v[i]);
    }
    return operands;
  }
  static STRATA_DEVICE void write(const Arguments& a, Place at, const Operands& operands) {
    write_floats(a.dpositions, at.row * a.dpositions.stride + at.col, operands.sum);
  }
};

}  // namespace

void embedding(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &ids = call.inputs[0], &table = call.inputs[1], &x = call.outputs[0];
  const kernels::Tensor* positions = call.inputs.size() == 3 ? &call.inputs[2] : nullptr;
  if (positions != nullptr)
    STRATA_CHECK(positions->dtype() == table.dtype(), "positions are", name_of(positions->dtype()),
                 "and the table", name_of(table.dtype()));
  const RowShape shape{x.rows(), x.cols()};
  with_float_type(x.dtype(), [&](auto activation) {
    with_float_type(table.dtype(), [&](auto parameter) {
      using A = decltype(activation);
      using P = decltype(parameter);
      constexpr int kWide = pack_elements(std::max(sizeof(A), sizeof(P)));
      const bool fits = packs_fit(kWide, shape, {&x}) &&
                        packs_fit(kWide, {table.rows(), table.cols()}, {&table}) &&
                        (positions == nullptr ||
                         packs_fit(kWide, {positions->rows(), positions->cols()}, {positions}));
      with_width<kWide>(fits, [&](auto width) {
        launch_elementwise<Embedding<A, P, width()>>(
            stream, {shape, ids.row<const std::int32_t>(), table.rows(), rows_of<const P>(table),
                     positions == nullptr ? RowPointer<const P>{} : rows_of<const P>(*positions),
                     Divisor(call.attributes.integer("sequence")), rows_of<A>(x)});
      });
    });
  });
}

void position_backward(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &dx = call.inputs[0], &dpositions = call.outputs[0];
  const RowShape shape{dpositions.rows(), dpositions.cols()};
  with_float_type(dx.dtype(), [&](auto element) {
    using A = decltype(element);
    constexpr int kWide = pack_elements(sizeof(A));
    const bool fits =
        packs_fit(kWide, {dx.rows(), dx.cols()}, {&dx}) && any_packs_fit(kWide, dpositions);
    with_width<kWide>(fits, [&](auto width) {
      launch_elementwise<PositionBackward<A, width()>>(
          stream, {shape, rows_of<const A>(dx), dx.rows(), call.attributes.integer("sequence"),
                   any_floats(dpositions)});
    });
  });
}

}  // namespace strata::cuda
