// Compares multiply_blocks with dnnl_sgemm on one tile and one thread, in FLOP/s. Operands are
// parts of large matrices, whose rows are a multiple of 4 KiB or not.
#include <benchmark/benchmark.h>
#include <dnnl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/block_product.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/tile_product.h"

namespace strata::kernels {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

std::unique_ptr<float, Free> filled(std::int64_t count) {
  std::unique_ptr<float, Free> memory(
      static_cast<float*>(std::aligned_alloc(64, static_cast<std::size_t>(count + 15) / 16 * 64)));
  for (std::int64_t i = 0; i < count; ++i)
    memory.get()[i] = static_cast<float>(i * 2654435761 >> 22 & 1023) / 4096;
  return memory;
}

void run(benchmark::State& state, const TileShape& s, bool by_library) {
  const std::int64_t rows = std::max({s.m, s.n, s.k});
  const auto a = filled(rows * s.a_stride), b = filled(rows * s.b_stride);
  const auto c = filled(s.m * s.c_stride);
  const auto scratch = filled(packed_bytes(s) / 4);
  const auto bytes = [](float* data) { return reinterpret_cast<std::byte*>(data); };
  be_single_threaded();
  for (auto _ : state) {
    if (by_library) {
      if (dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1,
                     a.get(), s.a_stride, b.get(), s.b_stride, 0, c.get(),
                     s.c_stride) != dnnl_success)
        state.SkipWithError("dnnl_sgemm failed");
    } else {
      multiply_blocks(s, bytes(a.get()), bytes(b.get()), c.get(),
                      {bytes(scratch.get()), static_cast<std::size_t>(packed_bytes(s))});
    }
  }
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * static_cast<double>(s.m * s.n * s.k),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void add(const std::string& form, bool ta, bool tb, std::int64_t m, std::int64_t n) {
  for (const std::int64_t stride : {2304, 3072}) {
    const TileShape shape{.m = m,
                          .n = n,
                          .k = 768,
                          .a_transposed = ta,
                          .b_transposed = tb,
                          .a_stride = stride,
                          .b_stride = stride,
                          .c_stride = stride};
    const std::string size =
        std::to_string(m) + "x" + std::to_string(n) + "x768/stride:" + std::to_string(stride) + "/";
    for (const bool by_library : {false, true})
      benchmark::RegisterBenchmark(
          (form + "/" + size + (by_library ? "dnnl_sgemm" : "blocks")).c_str(), run, shape,
          by_library);
  }
}

}  // namespace
}  // namespace strata::kernels

int main(int count, char** arguments) {
  using strata::kernels::add;
  strata::kernels::limit_libraries(strata::kernels::detect_cpu_features());
  for (const auto& [m, n] : {std::pair{256, 384}, {512, 384}, {256, 768}, {512, 768}}) {
    add("A*B", false, false, m, n);
    add("A*B^T", false, true, m, n);
    add("A^T*B", true, false, m, n);
  }
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
