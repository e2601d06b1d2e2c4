// Measures the matrix products of one GPT-2 124M step (1,024 rows), each as its operation runs it,
// in FLOP/s; a square product beside them is the ceiling. STRATA_BENCH_THREADS sets the threads
// (default: all). --benchmark_filter=/1024 leaves out the shapes that are only there to be tested.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/matmul.h"
#include "kernels/ops/operation.h"

namespace strata::kernels {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

int thread_count() {
  const char* text = std::getenv("STRATA_BENCH_THREADS");
  return text != nullptr ? std::atoi(text) : static_cast<int>(std::thread::hardware_concurrency());
}

/// Holds the operands of one call, filled with small numbers.
class Operands {
 public:
  Tensor add(const TensorType& type) {
    const auto bytes = static_cast<std::size_t>((type.span_bytes() + 63) / 64 * 64);
    memory_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    std::byte* data = memory_.back().get();
    std::memset(data, 0, bytes);
    if (type.dtype == DType::f32)
      for (std::size_t i = 0; i < bytes / 4; ++i)
        reinterpret_cast<float*>(data)[i] =
            static_cast<float>(i * 2654435761U >> 22 & 1023U) / 4096;
    if (type.dtype == DType::bf16)
      for (std::size_t i = 0; i < bytes / 2; ++i)
        reinterpret_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(0x3d00 + i % 251);
    return {type, data};
  }

 private:
  std::vector<Memory> memory_;
};

void run(benchmark::State& state, std::string_view name, const Types& types,
         const Attributes& attributes) {
  CpuDevice device(thread_count());
  CpuStream stream(device);
  Operands operands;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  const Operation& operation = find_operation(name);
  const Types output_types = operation.infer(types, attributes);
  for (const TensorType& type : types) inputs.push_back(operands.add(type));
  for (const TensorType& type : output_types) outputs.push_back(operands.add(type));
  const std::int64_t bytes =
      workspace_bytes(operation, types, output_types, attributes, device.capabilities());
  const Tensor workspace = operands.add(TensorType(DType::u8, {bytes + 64}));
  const KernelCall call{
      inputs, outputs, {workspace.data, static_cast<std::size_t>(bytes)}, attributes};
  const Kernel kernel = cpu_kernels().find(name);
  const std::clock_t begin = std::clock();  // CPU time of all threads
  for (auto _ : state) kernel(stream, call);
  const double cpu_seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const double flops = operation.cost(types, output_types, attributes).flops;
  // CPU seconds leave out the time in which other processes had the cores.
  state.counters["FLOP/CPU_s"] = flops * static_cast<double>(state.iterations()) / cpu_seconds;
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

/// Arguments: rows, out, in, transposed, 16-bit.
struct LinearShape {
  explicit LinearShape(const benchmark::State& state)
      : dtype(state.range(4) != 0 ? DType::bf16 : DType::f32),
        x(dtype, {state.range(0), state.range(2)}),
        dy(dtype, {state.range(0), state.range(1)}),
        w(state.range(3) != 0 ? TensorType(dtype, {state.range(2), state.range(1)})
                              : TensorType(dtype, {state.range(1), state.range(2)})),
        attributes{{"transposed", static_cast<double>(state.range(3))}} {}
  DType dtype;
  TensorType x, dy, w;
  Attributes attributes;
};

void forward(benchmark::State& state) {
  const LinearShape s(state);
  run(state, "linear", {s.x, s.w, TensorType(s.dtype, {state.range(1)})}, s.attributes);
}
void backward_input(benchmark::State& state) {
  const LinearShape s(state);
  run(state, "linear_backward_input", {s.dy, s.w}, s.attributes);
}
void backward_weight(benchmark::State& state) {
  const LinearShape s(state);
  run(state, "linear_backward_weight", {s.dy, s.x}, s.attributes);
}
void backward_bias(benchmark::State& state) {
  const LinearShape s(state);
  run(state, "linear_backward_bias", {s.dy}, s.attributes);
}

/// Arguments: rows, columns of W (padded vocabulary), width, 16-bit.
void head(benchmark::State& state) {
  const DType dtype = state.range(3) != 0 ? DType::bf16 : DType::f32;
  const std::int64_t n = state.range(0);
  run(state, "head_loss",
      {TensorType(dtype, {n, state.range(2)}), TensorType(dtype, {state.range(1), state.range(2)}),
       TensorType(DType::i32, {n}), TensorType(DType::f32, {2})},
      {{"vocabulary", static_cast<double>(state.range(1) - 47)}});
}

/// Argument: the size of a square fp32 product.
void ceiling(benchmark::State& state) {
  const TensorType square(DType::f32, {state.range(0), state.range(0)});
  run(state, "linear", {square, square}, {{"transposed", 1}});
}

void linear_shapes(benchmark::internal::Benchmark* b) {
  b->Args({16, 32, 48, 1, 0});
  for (int bf16 : {0, 1})
    for (int transposed : {1, 0})
      for (auto [out, in] : {std::pair{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}})
        b->Args({1024, out, in, transposed, bf16});
}

BENCHMARK(ceiling)->Arg(64)->Arg(1024)->Arg(2048)->UseRealTime();
BENCHMARK(forward)->Apply(linear_shapes)->UseRealTime();
BENCHMARK(backward_input)->Apply(linear_shapes)->UseRealTime();
BENCHMARK(backward_weight)->Apply(linear_shapes)->UseRealTime();
BENCHMARK(backward_bias)->Args({16, 32, 48, 1, 0})->Args({1024, 3072, 768, 1, 0})->UseRealTime();
BENCHMARK(head)
    ->Args({16, 384, 64, 0})
    ->Args({1024, 50304, 768, 0})
    ->Args({1024, 50304, 768, 1})
    ->UseRealTime();

}  // namespace
}  // namespace strata::kernels
