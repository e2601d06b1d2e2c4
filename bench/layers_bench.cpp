// Times the operations between matrix products, at the shapes of GPT-2 124M (4 x 256 tokens).
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/gelu.h"
#include "kernels/ops/norm.h"
#include "kernels/ops/swiglu.h"

namespace strata::kernels {
namespace {

/// Holds the storage of one call, filled with normal deviates (integers: zero).
class Call {
 public:
  Call(const Operation& operation, Types inputs, Attributes attributes, int threads)
      : operation_(operation), attributes_(std::move(attributes)), device_(threads) {
    const Types outputs = operation.infer(inputs, attributes_);
    cost_ = operation.cost(inputs, outputs, attributes_);
    for (const TensorType& type : inputs) inputs_.push_back(tensor(type));
    for (const TensorType& type : outputs) outputs_.push_back(tensor(type));
    workspace_.resize(static_cast<std::size_t>(
        workspace_bytes(operation, inputs, outputs, attributes_, device_.capabilities())));
  }
  void measure(benchmark::State& state, Kernel kernel) {
    CpuStream stream(device_);
    for (auto _ : state) kernel(stream, {inputs_, outputs_, workspace_, attributes_});
    state.counters["GFLOP/s"] =
        benchmark::Counter(cost_.flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["GB/s"] =
        benchmark::Counter(cost_.bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  }

 private:
  Tensor tensor(const TensorType& type) {
    storage_.emplace_back(static_cast<std::size_t>(type.span_bytes()));
    std::mt19937 engine(static_cast<unsigned>(storage_.size()));
    std::normal_distribution<float> normal;
    auto* floats = reinterpret_cast<float*>(storage_.back().data());
    if (type.dtype == DType::f32)
      for (std::int64_t i = 0; i < type.span_bytes() / 4; ++i) floats[i] = normal(engine);
    return {type, storage_.back().data()};
  }

  const Operation& operation_;
  Attributes attributes_;
  CpuDevice device_;
  Cost cost_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::byte> workspace_;
};

constexpr std::int64_t kTokens = 1024, kHidden = 768, kInner = 3072;

/// Arguments: sequence, percent of dropout, threads. q, k and v are views of one packed product.
void attention(benchmark::State& state, bool backward) {
  const std::int64_t sequence = state.range(0), heads = 12, head_size = kHidden / heads;
  const std::int64_t batch = std::max<std::int64_t>(1, kTokens / sequence);
  Attributes attributes{{"sequence", static_cast<double>(sequence)},
                        {"scale", 1 / std::sqrt(static_cast<double>(head_size))}};
  const TensorType packed(DType::f32, {batch * sequence, heads, head_size}, 3 * kHidden);
  const TensorType out(DType::f32, {batch * sequence, heads, head_size});
  Types inputs{packed, packed, packed};
  if (backward) inputs = {out, packed, packed, packed, out, {DType::f32, {batch, heads, sequence}}};
  if (state.range(1) > 0) {
    attributes.set("p", static_cast<double>(state.range(1)) / 100);
    attributes.set("key", 1);
    inputs.push_back({DType::i64, {2 + batch}});
  }
  Call call(backward ? attention_backward_operation() : attention_operation(), inputs, attributes,
            static_cast<int>(state.range(2)));
  call.measure(state, backward ? attention_backward_kernel : attention_kernel);
}

void attention_forward(benchmark::State& state) { attention(state, false); }
void attention_backward(benchmark::State& state) { attention(state, true); }

const TensorType kActivation(DType::f32, {kTokens, kHidden}), kWide(DType::f32, {kTokens, kInner}),
    kVector(DType::f32, {kHidden}), kStats(DType::f32, {kTokens, 2});

void gelu(benchmark::State& state) {
  Call(gelu_operation(), {kWide}, {{"tanh", 1}}, static_cast<int>(state.range(0)))
      .measure(state, gelu_kernel);
}
void gelu_backward(benchmark::State& state) {
  Call(gelu_backward_operation(), {kWide, kWide}, {{"tanh", 1}}, static_cast<int>(state.range(0)))
      .measure(state, gelu_backward_kernel);
}
void residual_norm(benchmark::State& state) {
  Call(residual_norm_operation(), {kActivation, kActivation, kVector, kVector},
       {{"eps", 1e-5}, {"rms", 0}, {"bias", 1}}, static_cast<int>(state.range(0)))
      .measure(state, residual_norm_kernel);
}
void norm_backward(benchmark::State& state) {
  Call(norm_backward_operation(), {kActivation, kActivation, kVector, kStats, kActivation},
       {{"rms", 0}, {"bias", 1}}, static_cast<int>(state.range(0)))
      .measure(state, norm_backward_kernel);
}
void swiglu_backward(benchmark::State& state) {
  Call(swiglu_backward_operation(), {kWide, {DType::f32, {kTokens, 2 * kInner}}}, {},
       static_cast<int>(state.range(0)))
      .measure(state, swiglu_backward_kernel);
}

BENCHMARK(attention_forward)
    ->ArgsProduct({{256, 1024}, {0, 10}, {1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(attention_backward)
    ->ArgsProduct({{256, 1024}, {0, 10}, {1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(gelu)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(gelu_backward)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(residual_norm)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(norm_backward)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(swiglu_backward)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace strata::kernels
