// Times one optimizer update on the CPU, per format of its state. Alone it measures one tile with
// Google Benchmark. `adam_bench --serve ELEMENTS THREADS` reads names of cases, runs one update for
// each and answers with its seconds, so that bench/peers/adam.py can measure other programs in
// between.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {
namespace {

/// State that is updated in place, one element per `share` parameters. Equal names share storage.
struct StateOperand {
  const char* name;
  DType dtype;
  std::int64_t share = 1;
};

struct Case {
  const char* name;
  const char* operation;
  std::vector<StateOperand> state;  ///< same order as the operation's inputs
  DType gradient;
  bool parameter;   ///< writes a bf16 parameter beside the master
  bool stochastic;  ///< takes random numbers
};

constexpr DType kF32 = DType::f32, kBf16 = DType::bf16;

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"adamw", "adamw", {{"master", kF32}, {"m", kF32}, {"v", kF32}}, kF32, false, false},
      {"adamw 16-bit", "adamw", {{"master", kF32}, {"m", kF32}, {"v", kF32}}, kBf16, true, false},
      {"adamw 16-bit, bf16 moments",
       "adamw",
       {{"master", kF32}, {"m16", kBf16}, {"v16", kBf16}},
       kBf16,
       true,
       true},
      {"adamw_packed 16-bit",
       "adamw_packed",
       {{"parameter", kBf16}, {"remainder", DType::i16}, {"m", kF32}, {"v", kF32}},
       kBf16,
       false,
       false},
      {"adamw_packed 16-bit, bf16 moments",
       "adamw_packed",
       {{"parameter", kBf16}, {"remainder", DType::i16}, {"m16", kBf16}, {"v16", kBf16}},
       kBf16,
       false,
       true},
      {"lion", "lion", {{"master", kF32}, {"m", kF32}}, kF32, false, false},
      {"lion 16-bit", "lion", {{"master", kF32}, {"m", kF32}}, kBf16, true, false},
      {"lion 16-bit, bf16 moment", "lion", {{"master", kF32}, {"m16", kBf16}}, kBf16, true, true},
      {"adamw_8bit 16-bit",
       "adamw_8bit",
       {{"master", kF32},
        {"m8", DType::u8},
        {"v8", DType::u8},
        {"m_scale", kF32, 128},
        {"v_scale", kF32, 128}},
       kBf16,
       true,
       false},
      {"adamw_bf16",
       "adamw_bf16",
       {{"parameter", kBf16}, {"m16", kBf16}, {"v16", kBf16}},
       kBf16,
       false,
       true},
  };
  return all;
}

/// Holds the storage of all cases at one size; cases share equal operands.
class Updates {
 public:
  Updates(std::int64_t elements, int threads)
      : elements_(elements), device_(threads), stream_(device_) {
    control_.apply = 1;
    control_.learning_rate = 1e-4F;
    control_.bias_correction1 = 0.5F;
    control_.bias_correction2_sqrt = 0.1F;
  }

  /// Makes those operands of a case that do not exist yet.
  void prepare(const Case& c) { (void)outputs(c, inputs(c)); }

  void run(const Case& c) {
    const Operation& operation = find_operation(c.operation);
    Attributes attributes{{"beta1", 0.9},         {"beta2", 0.999}, {"eps", 1e-8},
                          {"weight_decay", 0.01}, {"decoupled", 1}, {"key", 1}};
    if (c.parameter) attributes.set("parameter_dtype", static_cast<double>(kBf16));
    const std::vector<Tensor> in = inputs(c);
    const std::vector<Tensor> out = outputs(c, in);
    cpu_kernels().find(operation.name)(stream_, {in, out, {}, attributes});
  }

  [[nodiscard]] double bytes(const Case& c) {
    std::int64_t bytes = (size_of(c.gradient) + (c.parameter ? 2 : 0)) * elements_;
    for (const StateOperand& state : c.state)
      bytes += 2 * size_of(state.dtype) * elements_ / state.share;
    return static_cast<double>(bytes);
  }

 private:
  std::vector<Tensor> inputs(const Case& c) {
    std::vector<Tensor> in;
    for (const StateOperand& state : c.state)
      in.push_back(operand(state.name, {state.dtype, {elements_ / state.share}}));
    in.push_back(
        operand(c.gradient == kF32 ? "gradient" : "gradient16", {c.gradient, {elements_}}));
    in.push_back({{DType::u8, {sizeof control_}}, reinterpret_cast<std::byte*>(&control_)});
    if (c.stochastic) in.push_back({{DType::i64, {2}}, reinterpret_cast<std::byte*>(rng_)});
    return in;
  }

  std::vector<Tensor> outputs(const Case& c, const std::vector<Tensor>& in) {
    std::vector<Tensor> out(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(c.state.size()));
    if (c.parameter) out.push_back(operand("parameter", {kBf16, {elements_}}));
    return out;
  }

  Tensor operand(const std::string& name, const TensorType& type) {
    std::unique_ptr<std::byte[]>& bytes = storage_[name];
    if (bytes == nullptr) {
      const auto count = static_cast<std::size_t>(type.span_bytes());
      bytes.reset(new std::byte[count]);
      fill(bytes.get(), count, type.dtype);
    }
    return {type, bytes.get()};
  }

  /// Fills with numbers of about 1e-3, none negative, since second moments must not be. Shorter
  /// types get the upper bytes of an fp32 number, which for bf16 is the number itself.
  static void fill(std::byte* to, std::size_t bytes, DType dtype) {
    std::minstd_rand engine(1);
    const auto size = static_cast<std::size_t>(size_of(dtype));
    for (std::size_t at = 0; at < bytes; at += size) {
      const float value = 1e-3F * static_cast<float>(engine()) / static_cast<float>(engine.max());
      std::memcpy(to + at, reinterpret_cast<const std::byte*>(&value) + 4 - size, size);
    }
  }

  std::int64_t elements_;
  CpuDevice device_;
  CpuStream stream_;
  StepControl control_;
  std::int64_t rng_[2] = {1, 2};
  std::map<std::string, std::unique_ptr<std::byte[]>> storage_;
};

int serve(std::int64_t elements, int threads) {
  Updates updates(elements, threads);
  for (std::string name; std::getline(std::cin, name);) {
    const auto found =
        std::find_if(cases().begin(), cases().end(), [&](const Case& c) { return name == c.name; });
    if (found == cases().end()) {
      std::cerr << "adam_bench: no case '" << name << "'\n";
      return 2;
    }
    updates.prepare(*found);
    const auto begin = std::chrono::steady_clock::now();
    updates.run(*found);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::cout << taken.count() << std::endl;  // flushed, since the reader waits for it
  }
  return 0;
}

constexpr std::int64_t kTile = 4 << 20;

void measure(benchmark::State& state, const Case& c) {
  Updates updates(kTile, static_cast<int>(state.range(0)));
  updates.prepare(c);
  for (auto _ : state) updates.run(c);
  state.counters["GB/s"] =
      benchmark::Counter(updates.bytes(c) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace
}  // namespace strata::kernels

int main(int argc, char** argv) {
  using namespace strata::kernels;
  if (argc == 4 && std::strcmp(argv[1], "--serve") == 0)
    return serve(std::atoll(argv[2]), std::atoi(argv[3]));
  for (const Case& c : cases())
    benchmark::RegisterBenchmark(c.name, [&c](benchmark::State& state) { measure(state, c); })
        ->Arg(1)
        ->Arg(2)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
