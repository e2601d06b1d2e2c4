#include "kernels/cpu/tile_product.h"

#include <omp.h>
#include <dnnl.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cpu/convert.h"

namespace strata::kernels {
namespace {

/// How much of k is widened at once: the tiles of usual shapes stay in the second-level cache.
constexpr std::int64_t kWidenedDepth = 1024;

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::int64_t widened_bytes(DType type, std::int64_t extent, std::int64_t depth) {
  return type == DType::f32 ? 0 : aligned(extent * depth * size_of(DType::f32));
}

void check(dnnl_status_t status, const char* call) {
  if (status != dnnl_success)
    throw InternalError(std::string(call) + " failed: oneDNN status " + std::to_string(status));
}

/// Part of a matrix: rows x cols elements from `data` on.
struct Block {
  const std::byte* data;
  DType dtype;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t cols;
};

/// The block as fp32, in place or widened into `to` (then without gaps); sets its new stride.
const float* as_fp32(const Block& block, std::byte* to, std::int64_t& stride) {
  stride = block.stride;
  if (block.dtype == DType::f32) return reinterpret_cast<const float*>(block.data);
  const std::int64_t width = size_of(block.dtype);
  for (std::int64_t r = 0; r < block.rows; ++r)
    convert_range(block.dtype, block.data + r * block.stride * width, DType::f32,
                  to + r * block.cols * size_of(DType::f32), block.cols);
  stride = block.cols;
  return reinterpret_cast<const float*>(to);
}

/// Elements [k, k + depth) of an operand whose other extent is `extent`.
Block depth_block(const std::byte* data, DType dtype, std::int64_t stride, bool depth_is_rows,
                  std::int64_t extent, std::int64_t k, std::int64_t depth) {
  const std::int64_t first = (depth_is_rows ? k * stride : k) * size_of(dtype);
  return {data + first, dtype, stride, depth_is_rows ? depth : extent,
          depth_is_rows ? extent : depth};
}

void multiply_fp32(const TileShape& s, std::int64_t depth, const float* a, std::int64_t a_stride,
                   const float* b, std::int64_t b_stride, bool accumulate, float* c) {
  check(dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, depth, 1.0F, a,
                   a_stride, b, b_stride, accumulate ? 1.0F : 0.0F, c, s.c_stride),
        "dnnl_sgemm");
}

/// The fp32 product after widening; pieces of k in order.
void multiply_widened(const TileShape& s, const std::byte* a, const std::byte* b, float* c,
                      std::byte* scratch) {
  const bool in_place = s.a_dtype == DType::f32 && s.b_dtype == DType::f32;
  const std::int64_t most = in_place ? s.k : std::min(s.k, kWidenedDepth);
  std::byte* b_scratch = scratch + widened_bytes(s.a_dtype, s.m, most);
  for (std::int64_t k = 0; k < s.k; k += most) {
    const std::int64_t depth = std::min(most, s.k - k);
    std::int64_t a_stride = 0;
    std::int64_t b_stride = 0;
    const float* a32 = as_fp32(depth_block(a, s.a_dtype, s.a_stride, s.a_transposed, s.m, k, depth),
                               scratch, a_stride);
    const float* b32 = as_fp32(
        depth_block(b, s.b_dtype, s.b_stride, !s.b_transposed, s.n, k, depth), b_scratch, b_stride);
    multiply_fp32(s, depth, a32, a_stride, b32, b_stride, s.accumulate || k > 0, c);
  }
}

/// A oneDNN primitive with each worker's memory objects, whose handles every run sets anew.
struct NativeProduct {
  struct Operands {
    dnnl::memory a, b, c, scratchpad;
  };
  dnnl::matmul primitive;
  std::vector<Operands> workers;
};

NativeProduct make_native(const TileShape& s, const dnnl::engine& engine, int workers,
                          std::size_t& scratchpad_bytes) {
  using Type = dnnl::memory::data_type;
  using Dims = dnnl::memory::dims;
  const dnnl::memory::desc a({s.m, s.k}, Type::bf16,
                             s.a_transposed ? Dims{1, s.a_stride} : Dims{s.a_stride, 1});
  const dnnl::memory::desc b({s.k, s.n}, Type::bf16,
                             s.b_transposed ? Dims{1, s.b_stride} : Dims{s.b_stride, 1});
  const dnnl::memory::desc c({s.m, s.n}, Type::f32, Dims{s.c_stride, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops add_existing;
    add_existing.append_sum();
    attributes.set_post_ops(add_existing);
  }
  const dnnl::matmul::primitive_desc description({a, b, c}, attributes, engine);
  NativeProduct product{dnnl::matmul(description), {}};
  for (int worker = 0; worker < workers; ++worker)
    product.workers.push_back({{a, engine, nullptr},
                               {b, engine, nullptr},
                               {c, engine, nullptr},
                               {description.scratchpad_desc(), engine, nullptr}});
  scratchpad_bytes = description.scratchpad_desc().get_size();
  return product;
}

}  // namespace

void be_single_threaded() {
  if (omp_get_max_threads() != 1) omp_set_num_threads(1);
}

class TileProduct {
 public:
  TileShape shape;
  std::unique_ptr<NativeProduct> native;  ///< nullptr: fp32, after widening where needed
};

struct TileProducts::State {
  struct Worker {
    dnnl::stream stream;
    std::unique_ptr<dnnl::memory> scratchpad;  ///< the largest of all products
  };

  bool native_bf16 = false;
  dnnl::engine engine;
  std::vector<Worker> workers;
  std::size_t scratchpad_bytes = 0;
  std::map<TileShape, TileProduct> products;

  void grow_scratchpads(std::size_t bytes) {
    if (bytes <= scratchpad_bytes) return;
    const dnnl::memory::desc type({static_cast<dnnl::memory::dim>(bytes)},
                                  dnnl::memory::data_type::u8, dnnl::memory::dims{1});
    for (Worker& worker : workers) worker.scratchpad = std::make_unique<dnnl::memory>(type, engine);
    scratchpad_bytes = bytes;
  }
};

std::int64_t tile_scratch_bytes(const TileShape& shape) {
  const std::int64_t depth = std::min(shape.k, kWidenedDepth);
  return widened_bytes(shape.a_dtype, shape.m, depth) +
         widened_bytes(shape.b_dtype, shape.n, depth);
}

TileProducts::TileProducts(int workers, const CpuFeatures& features)
    : state_(std::make_unique<State>()) {
  state_->native_bf16 = features.avx512_bf16;
  state_->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  for (int worker = 0; worker < workers; ++worker)
    state_->workers.push_back({dnnl::stream(state_->engine), nullptr});
}

TileProducts::~TileProducts() = default;

bool TileProducts::native(DType a, DType b) const {
  if (a == DType::f32 && b == DType::f32) return true;
  return state_->native_bf16 && a == DType::bf16 && b == DType::bf16;
}

const TileProduct& TileProducts::prepare(const TileShape& shape) {
  const auto found = state_->products.find(shape);
  if (found != state_->products.end()) return found->second;
  STRATA_CHECK(shape.m > 0 && shape.n > 0 && shape.k > 0, shape.m, shape.n, shape.k);
  be_single_threaded();  // the library tunes a primitive for the threads that it sees
  TileProduct product{shape, nullptr};
  if (native(shape.a_dtype, shape.b_dtype) && shape.a_dtype != DType::f32) {
    std::size_t scratchpad_bytes = 0;
    try {
      product.native = std::make_unique<NativeProduct>(make_native(
          shape, state_->engine, static_cast<int>(state_->workers.size()), scratchpad_bytes));
    } catch (const dnnl::error& error) {
      throw InternalError(std::string("oneDNN cannot multiply bf16 tiles: ") + error.what());
    }
    state_->grow_scratchpads(scratchpad_bytes);
  }
  return state_->products.emplace(shape, std::move(product)).first->second;
}

void TileProducts::run(const TileProduct& product, int worker, const std::byte* a,
                       const std::byte* b, float* c, std::span<std::byte> scratch) const {
  be_single_threaded();
  if (product.native == nullptr) {
    const bool widens = product.shape.a_dtype != DType::f32 || product.shape.b_dtype != DType::f32;
    STRATA_CHECK(!widens ||
                 static_cast<std::int64_t>(scratch.size()) >= tile_scratch_bytes(product.shape));
    multiply_widened(product.shape, a, b, c, scratch.data());
    return;
  }
  const State::Worker& own = state_->workers[static_cast<std::size_t>(worker)];
  const auto& operands = product.native->workers[static_cast<std::size_t>(worker)];
  operands.a.set_data_handle(const_cast<std::byte*>(a));
  operands.b.set_data_handle(const_cast<std::byte*>(b));
  operands.c.set_data_handle(c);
  if (own.scratchpad) operands.scratchpad.set_data_handle(own.scratchpad->get_data_handle());
  // The C interface: the C++ one copies its arguments into new containers at every call.
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, operands.a.get()},
                                       {DNNL_ARG_WEIGHTS, operands.b.get()},
                                       {DNNL_ARG_DST, operands.c.get()},
                                       {DNNL_ARG_SCRATCHPAD, operands.scratchpad.get()}};
  check(dnnl_primitive_execute(product.native->primitive.get(), own.stream.get(), 4, arguments),
        "dnnl_primitive_execute");
}

}  // namespace strata::kernels
