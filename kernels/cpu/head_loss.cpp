#include "kernels/ops/head_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/round_up.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/head_geometry.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/cpu/softmax.h"

namespace strata::kernels {
namespace {

/// Rows whose statistics one task joins.
constexpr std::int64_t kJoinedRows = 16;

/// One call of head_loss or head_loss_eval. A chunk of rows goes through four stages, each a
/// parallel_for: logits (exponentiated per strip while a tile is in the cache), join (row losses,
/// and the factor of each strip of a row), dW (which first turns a strip into the gradient of the
/// logits), dx.
class Head {
 public:
  Head(CpuStream& stream, const KernelCall& call);
  void run();

 private:
  void begin_chunk(std::int64_t first);
  void logits_tile(std::int64_t task, int worker);
  void join_row(std::int64_t row);
  void weight_strip(std::int64_t task, int worker);
  void finish_weights(std::int64_t column, std::int64_t count, const float* sums);
  void input_gradient();

  template <typename T>
  [[nodiscard]] T* region(const HeadRegion& r) const {
    return reinterpret_cast<T*>(call_.workspace.data() + r.offset);
  }
  [[nodiscard]] std::byte* worker_scratch(int worker) const {
    return region<std::byte>(g_.workers) + worker * g_.worker_bytes;
  }
  [[nodiscard]] std::span<std::byte> packing_scratch(int worker) const {
    return {worker_scratch(worker) + g_.worker_tile_bytes,
            static_cast<std::size_t>(g_.worker_bytes - g_.worker_tile_bytes)};
  }
  [[nodiscard]] std::int64_t strip_columns(std::int64_t strip) const {
    return std::min(g_.strip, g_.columns - strip * g_.strip);
  }
  [[nodiscard]] std::int32_t target(std::int64_t row) const {
    return call_.inputs[2].row<const std::int32_t>()[first_row_ + row];
  }
  [[nodiscard]] const std::byte* x_row(std::int64_t row) const {
    const Tensor& x = call_.inputs[0];
    return x.data + (first_row_ + row) * x.row_stride() * size_of(x.dtype());
  }
  [[nodiscard]] const std::byte* w_row(std::int64_t row) const {
    const Tensor& w = call_.inputs[1];
    return w.data + row * w.row_stride() * size_of(w.dtype());
  }
  /// Returns where sums of rows [column, ...) of dW are made; sets `stride` to their row stride.
  float* dw_sums(std::int64_t column, int worker, std::int64_t& stride) const;
  void prepare_logits();
  void prepare_weights();

  const KernelCall& call_;
  MatmulEngine& engine_;
  ThreadPool& pool_;
  bool train_;
  HeadGeometry g_;
  bool rounds_ = false;  ///< the logits' gradient is made bf16 for its products
  std::int64_t first_row_ = 0;
  std::int64_t chunk_rows_ = 0;
  // Products by row tile and strip; index 0 is a whole one, 1 the last.
  std::array<std::array<const TileProduct*, 2>, 2> logits_products_{};
  std::array<std::array<const TileProduct*, 2>, 2> weight_products_{};  // by strip, columns of dW
};

/// The types of a call's operands, on the stack because kernels do not allocate.
struct CallTypes {
  std::array<TensorType, 4> inputs;
  std::array<TensorType, 3> outputs;
  std::size_t output_count;

  explicit CallTypes(const KernelCall& call) : output_count(call.outputs.size()) {
    STRATA_CHECK(call.inputs.size() == inputs.size() && output_count <= outputs.size());
    const auto type = [](const Tensor& tensor) { return tensor.type; };
    std::transform(call.inputs.begin(), call.inputs.end(), inputs.begin(), type);
    std::transform(call.outputs.begin(), call.outputs.end(), outputs.begin(), type);
  }
  [[nodiscard]] HeadGeometry geometry(const Attributes& attributes, int workers) const {
    return head_geometry(inputs, {outputs.data(), output_count}, attributes, workers);
  }
};

Head::Head(CpuStream& stream, const KernelCall& call)
    : call_(call),
      engine_(stream.matmul()),
      pool_(stream.pool()),
      train_(call.outputs.size() > 1),
      g_(CallTypes(call).geometry(call.attributes, stream.pool().threads())) {
  STRATA_CHECK(static_cast<std::int64_t>(call.workspace.size()) >= g_.total_bytes,
               call.workspace.size(), g_.total_bytes);
  rounds_ = g_.rounded_gradient.bytes > 0 && engine_.tiles().native_bf16();
}

void Head::run() {
  for (std::int64_t first = 0; first < g_.rows; first += g_.chunk_rows) {
    begin_chunk(first);
    const auto logits = [this](std::int64_t task, int worker) { logits_tile(task, worker); };
    pool_.parallel_for(divide_up(chunk_rows_, g_.tile_rows) * g_.strips, logits);
    const auto join = [this](std::int64_t task, int) {
      const std::int64_t end = std::min(chunk_rows_, (task + 1) * kJoinedRows);
      for (std::int64_t row = task * kJoinedRows; row < end; ++row) join_row(row);
    };
    pool_.parallel_for(divide_up(chunk_rows_, kJoinedRows), join);
    if (!train_) continue;
    const auto weights = [this](std::int64_t task, int worker) { weight_strip(task, worker); };
    pool_.parallel_for(g_.strips, weights);
    input_gradient();
  }
  const double* losses = region<double>(g_.row_losses);
  double sum = 0;
  for (std::int64_t row = 0; row < g_.rows; ++row) sum += losses[row];
  *call_.outputs[0].row<double>() =
      static_cast<double>(call_.inputs[3].row<const float>()[1]) * sum;
}

void Head::begin_chunk(std::int64_t first) {
  first_row_ = first;
  chunk_rows_ = std::min(g_.chunk_rows, g_.rows - first);
  prepare_logits();
  if (train_) prepare_weights();
}

void Head::prepare_logits() {
  const Tensor& x = call_.inputs[0];
  const Tensor& w = call_.inputs[1];
  const std::int64_t last_rows =
      chunk_rows_ - (divide_up(chunk_rows_, g_.tile_rows) - 1) * g_.tile_rows;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j)
      logits_products_[i][j] =
          &engine_.tiles().prepare({.m = i == 0 ? std::min(g_.tile_rows, chunk_rows_) : last_rows,
                                    .n = j == 0 ? g_.strip : strip_columns(g_.strips - 1),
                                    .k = g_.width,
                                    .a_dtype = x.dtype(),
                                    .b_dtype = w.dtype(),
                                    .a_transposed = false,
                                    .b_transposed = true,
                                    .a_stride = x.row_stride(),
                                    .b_stride = w.row_stride(),
                                    .c_stride = train_ ? g_.columns : g_.strip,
                                    .accumulate = false});
}

void Head::prepare_weights() {
  const Tensor& x = call_.inputs[0];
  std::int64_t stride = 0;
  dw_sums(0, 0, stride);
  const std::int64_t piece = std::min(kGradientColumns, g_.width);
  const std::int64_t last_piece = g_.width - (divide_up(g_.width, piece) - 1) * piece;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j)
      weight_products_[i][j] =
          &engine_.tiles().prepare({.m = i == 0 ? g_.strip : strip_columns(g_.strips - 1),
                                    .n = j == 0 ? piece : last_piece,
                                    .k = chunk_rows_,
                                    .a_dtype = rounds_ ? DType::bf16 : DType::f32,
                                    .b_dtype = x.dtype(),
                                    .a_transposed = true,
                                    .b_transposed = false,
                                    .a_stride = g_.columns,
                                    .b_stride = x.row_stride(),
                                    .c_stride = stride,
                                    .accumulate = first_row_ > 0});
}

void Head::logits_tile(std::int64_t task, int worker) {
  const std::int64_t row_tiles = divide_up(chunk_rows_, g_.tile_rows);
  const std::int64_t strip = task / row_tiles;
  const std::int64_t first = task % row_tiles * g_.tile_rows;
  const std::int64_t rows = std::min(g_.tile_rows, chunk_rows_ - first);
  const std::int64_t column = strip * g_.strip;
  const std::int64_t columns = strip_columns(strip);
  const std::int64_t stride = train_ ? g_.columns : g_.strip;
  float* tile = train_ ? region<float>(g_.logits) + first * stride + column
                       : reinterpret_cast<float*>(worker_scratch(worker));
  const auto& product =
      logits_products_[task % row_tiles == row_tiles - 1 ? 1 : 0][strip == g_.strips - 1 ? 1 : 0];
  engine_.tiles().run(*product, worker, x_row(first), w_row(column), tile, packing_scratch(worker));

  const std::int64_t valid = std::clamp<std::int64_t>(g_.vocabulary - column, 0, columns);
  for (std::int64_t row = first; row < first + rows; ++row) {
    float* values = tile + (row - first) * stride;
    const std::int64_t own = target(row) - column;
    if (own >= 0 && own < valid) region<float>(g_.target_logits)[row] = values[own];
    const SoftmaxPiece piece = exponentiate(values, columns, valid);
    region<float>(g_.largest)[row * g_.strips + strip] = piece.largest;
    region<float>(g_.sums)[row * g_.strips + strip] = piece.sum;
  }
}

void Head::join_row(std::int64_t row) {
  float* factors = region<float>(g_.largest) + row * g_.strips;
  const float* sums = region<float>(g_.sums) + row * g_.strips;
  double& loss = region<double>(g_.row_losses)[first_row_ + row];
  loss = 0;
  if (target(row) < 0) {
    std::fill(factors, factors + g_.strips, 0.0F);
    return;
  }
  const double largest = *std::max_element(factors, factors + g_.strips);
  double total = 0;
  for (std::int64_t strip = 0; strip < g_.strips; ++strip) {
    const double relative = std::exp(static_cast<double>(factors[strip]) - largest);
    total += relative * static_cast<double>(sums[strip]);
    factors[strip] = static_cast<float>(relative);
  }
  const double scale = static_cast<double>(call_.inputs[3].row<const float>()[0]) / total;
  for (std::int64_t strip = 0; strip < g_.strips; ++strip)
    factors[strip] = static_cast<float>(static_cast<double>(factors[strip]) * scale);
  const bool known = target(row) < g_.vocabulary;
  loss = known
             ? largest + std::log(total) - static_cast<double>(region<float>(g_.target_logits)[row])
             : std::numeric_limits<double>::quiet_NaN();
}

float* Head::dw_sums(std::int64_t column, int worker, std::int64_t& stride) const {
  const Tensor& dw = call_.outputs[2];
  if (dw.dtype() == DType::f32) {
    stride = dw.row_stride();
    return dw.row<float>(column);
  }
  stride = g_.width;
  if (g_.chunks > 1) return region<float>(g_.dw_sum) + column * g_.width;
  return reinterpret_cast<float*>(worker_scratch(worker));
}

void Head::weight_strip(std::int64_t strip, int worker) {
  const std::int64_t column = strip * g_.strip;
  const std::int64_t columns = strip_columns(strip);
  const std::int64_t valid = std::clamp<std::int64_t>(g_.vocabulary - column, 0, columns);
  const float scale = call_.inputs[3].row<const float>()[0];
  for (std::int64_t row = 0; row < chunk_rows_; ++row) {
    float* values = region<float>(g_.logits) + row * g_.columns + column;
    scale_row(values, region<float>(g_.largest)[row * g_.strips + strip], columns);
    const std::int64_t own = target(row) - column;
    if (own >= 0 && own < valid) values[own] -= scale;
    if (rounds_)
      convert_range(DType::f32, reinterpret_cast<const std::byte*>(values), DType::bf16,
                    region<std::byte>(g_.rounded_gradient) + (row * g_.columns + column) * 2,
                    columns);
  }
  const std::byte* gradient = rounds_ ? region<std::byte>(g_.rounded_gradient) + column * 2
                                      : region<std::byte>(g_.logits) + column * 4;
  std::int64_t stride = 0;
  float* sums = dw_sums(column, worker, stride);
  const auto& products = weight_products_[strip == g_.strips - 1 ? 1 : 0];
  const std::int64_t x_bytes = size_of(call_.inputs[0].dtype());
  for (std::int64_t i = 0; i < g_.width; i += kGradientColumns)
    engine_.tiles().run(*products[i + kGradientColumns >= g_.width ? 1 : 0], worker, gradient,
                        x_row(0) + i * x_bytes, sums + i, packing_scratch(worker));
  if (call_.outputs[2].dtype() != DType::f32 && first_row_ + chunk_rows_ == g_.rows)
    finish_weights(column, columns, sums);
}

void Head::finish_weights(std::int64_t column, std::int64_t count, const float* sums) {
  const Tensor& dw = call_.outputs[2];
  for (std::int64_t i = 0; i < count; ++i)
    convert_range(DType::f32, reinterpret_cast<const std::byte*>(sums + i * g_.width), dw.dtype(),
                  dw.data + (column + i) * dw.row_stride() * size_of(dw.dtype()), g_.width);
}

void Head::input_gradient() {
  const Tensor& dx = call_.outputs[1];
  Matmul product{.b = call_.inputs[1]};
  product.a = {TensorType(rounds_ ? DType::bf16 : DType::f32, {chunk_rows_, g_.columns}),
               rounds_ ? region<std::byte>(g_.rounded_gradient) : region<std::byte>(g_.logits)};
  product.c = {TensorType(dx.dtype(), {chunk_rows_, g_.width}, dx.row_stride()),
               dx.data + first_row_ * dx.row_stride() * size_of(dx.dtype())};
  engine_.run(product,
              {region<std::byte>(g_.products), static_cast<std::size_t>(g_.products.bytes)});
}

}  // namespace

void head_loss_kernel(Stream& stream, const KernelCall& call) { Head(cpu(stream), call).run(); }

void head_loss_eval_kernel(Stream& stream, const KernelCall& call) {
  Head(cpu(stream), call).run();
}

}  // namespace strata::kernels
