#include "kernels/cpu/tile_product.h"

#include <fmt/core.h>
#include <omp.h>
#include <dnnl.hpp>

#include <map>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cpu/block_product.h"

namespace strata::kernels {
namespace {

void check(dnnl_status_t status, const char* call) {
  if (status != dnnl_success)
    throw InternalError(fmt::format("{} failed: oneDNN status {}", call, status));
}

/// A oneDNN primitive with memory objects for each worker; every run sets their handles anew.
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
  std::unique_ptr<NativeProduct> native;  ///< set if the library multiplies two bf16 operands
};

struct TileProducts::State {
  struct Worker {
    dnnl::stream stream;
    std::unique_ptr<dnnl::memory> scratchpad;  ///< as large as any product needs
  };

  bool library_fp32 = false;
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

std::int64_t tile_scratch_bytes(const TileShape& shape) { return packed_bytes(shape); }

TileProducts::TileProducts(int workers, const CpuFeatures& features)
    : state_(std::make_unique<State>()) {
  state_->library_fp32 = features.avx512;
  state_->native_bf16 = features.avx512_bf16;
  state_->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  for (int worker = 0; worker < workers; ++worker)
    state_->workers.push_back({dnnl::stream(state_->engine), nullptr});
}

TileProducts::~TileProducts() = default;

bool TileProducts::by_library(DType a, DType b) const {
  if (a == DType::f32 && b == DType::f32) return state_->library_fp32;
  return a == DType::bf16 && b == DType::bf16 && native_bf16();
}

bool TileProducts::native_bf16() const { return state_->native_bf16; }

const TileProduct& TileProducts::prepare(const TileShape& shape) {
  const auto found = state_->products.find(shape);
  if (found != state_->products.end()) return found->second;
  STRATA_CHECK(shape.m > 0 && shape.n > 0 && shape.k > 0, shape.m, shape.n, shape.k);
  be_single_threaded();  // the library tunes a primitive for the threads that it sees
  TileProduct product{shape, nullptr};
  if (shape.a_dtype != DType::f32 && by_library(shape.a_dtype, shape.b_dtype)) {
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
  const TileShape& s = product.shape;
  if (!by_library(s.a_dtype, s.b_dtype)) {
    multiply_blocks(s, a, b, c, scratch);
    return;
  }
  be_single_threaded();
  if (product.native == nullptr) {
    check(
        dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1.0F,
                   reinterpret_cast<const float*>(a), s.a_stride, reinterpret_cast<const float*>(b),
                   s.b_stride, s.accumulate ? 1.0F : 0.0F, c, s.c_stride),
        "dnnl_sgemm");
    return;
  }
  const State::Worker& own = state_->workers[static_cast<std::size_t>(worker)];
  const auto& operands = product.native->workers[static_cast<std::size_t>(worker)];
  operands.a.set_data_handle(const_cast<std::byte*>(a));
  operands.b.set_data_handle(const_cast<std::byte*>(b));
  operands.c.set_data_handle(c);
  if (own.scratchpad) operands.scratchpad.set_data_handle(own.scratchpad->get_data_handle());
  // The C++ interface would copy its arguments into new containers at every call.
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, operands.a.get()},
                                       {DNNL_ARG_WEIGHTS, operands.b.get()},
                                       {DNNL_ARG_DST, operands.c.get()},
                                       {DNNL_ARG_SCRATCHPAD, operands.scratchpad.get()}};
  check(dnnl_primitive_execute(product.native->primitive.get(), own.stream.get(), 4, arguments),
        "dnnl_primitive_execute");
}

}  // namespace strata::kernels
