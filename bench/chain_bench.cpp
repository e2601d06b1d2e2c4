// The chain solver on chains like those of models: time, gap to the lower bound, effort. Rates are
// those of docs/adr/0018.
// --benchmark_filter=/20 leaves out the long option lists.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/chain/chain_options.h"
#include "runtime/chain/chain_solver.h"

namespace strata::runtime {
namespace {

/// A Llama-like model, its micro-batch, and a card.
struct Case {
  int layers;
  std::int64_t width, feed_forward, tokens;
  std::int64_t flops_per_s, memory_bytes_per_s, link_bytes_per_s;
  std::int64_t base_bytes;  ///< of state on the device
};

constexpr Case k7B{
    32, 4096, 11008, 8192, 130'000'000'000'000, 850'000'000'000, 20'000'000'000, 15'300'000'000};
constexpr Case k70B{
    80, 8192, 28672, 4096, 550'000'000'000'000, 2'800'000'000'000, 50'000'000'000, 20'000'000'000};
constexpr Case kLong{
    128, 4096, 11008, 8192, 550'000'000'000'000, 2'800'000'000'000, 50'000'000'000, 20'000'000'000};

/// A saved value: bytes, and the time in which it is made again.
struct Saved {
  std::int64_t bytes, again_ns;
};

/// Integer quotient of numbers whose product overflows; close enough for a benchmark.
std::int64_t ns(std::int64_t work, std::int64_t per_s) { return work / (per_s / 1'000'000'000); }

std::vector<Saved> saved_of(const Case& model) {
  const std::int64_t row = 2 * model.width * model.tokens;
  const std::int64_t wide = 2 * model.feed_forward * model.tokens;
  const auto product = [&](std::int64_t bytes) {
    return ns(bytes * model.width, model.flops_per_s);
  };
  const auto moving = [&](std::int64_t bytes) { return ns(2 * bytes, model.memory_bytes_per_s); };
  return {{row, 0},                       // x, the block's input: cannot be made again
          {row, moving(row)},             // n1
          {3 * row, product(3 * row)},    // q, k, v
          {row, product(row)},            // attention
          {row, product(row)},            // middle of the residual stream
          {row, moving(row)},             // n2
          {2 * wide, product(2 * wide)},  // gate and up
          {wide, moving(wide)}};          // their product
}

/// All ways of keeping, making again and sending away, undominated; the first `most` of them at
/// even distances.
std::vector<ChainOption> options_of(const Case& model, std::size_t most) {
  const std::vector<Saved> saved = saved_of(model);
  std::vector<ChainOption> all{{}};
  for (std::size_t s = 0; s < saved.size(); ++s) {
    std::vector<ChainOption> next;
    for (const ChainOption& before : all)
      for (int action = 0; action < 3; ++action) {
        ChainOption option = before;
        if (action == 0) option.kept_bytes += saved[s].bytes;
        if (action == 1) option.host_bytes += saved[s].bytes;
        if (action == 2) {
          if (s == 0) continue;
          option.recompute_ns += saved[s].again_ns;
          option.working_bytes += saved[s].bytes;
        }
        next.push_back(option);
      }
    all = std::move(next);
  }
  const std::vector<int> best = undominated_options(all);
  std::vector<ChainOption> chosen;
  const std::size_t count = std::min(most, best.size());
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(all[static_cast<std::size_t>(best[i * (best.size() - 1) / (count - 1)])]);
  return chosen;
}

Chain chain_of(const Case& model, std::size_t options) {
  const std::int64_t row = 2 * model.width * model.tokens;
  const std::int64_t wide = 2 * model.feed_forward * model.tokens;
  const std::int64_t weights = 4 * model.width * model.width + 3 * model.width * model.feed_forward;
  Chain chain;
  chain.classes = {options_of(model, options)};
  const std::int64_t forward_ns = ns(2 * weights * (model.tokens / 16), model.flops_per_s / 16);
  for (int i = 0; i < model.layers; ++i)
    chain.blocks.push_back({.forward_ns = forward_ns,
                            .backward_ns = 2 * forward_ns,
                            .forward_base_bytes = model.base_bytes,
                            // Gradients of later blocks are there already.
                            .backward_base_bytes = model.base_bytes + (model.layers - i) * row / 64,
                            .forward_working_bytes = 8 * row + 3 * wide,
                            .backward_working_bytes = 2 * row + 2 * wide});
  chain.link = {model.link_bytes_per_s, model.link_bytes_per_s};
  return chain;
}

/// Argument 0: the budget, in percent of the way from the floor to where all is kept.
void solve(benchmark::State& state, const Case& model) {
  Chain chain = chain_of(model, static_cast<std::size_t>(state.range(1)));
  const std::int64_t floor = solve_chain(chain, {0}).floor_bytes;
  const ChainCost all = solve_chain(chain, {0}).cost;
  chain.budget_bytes = floor + (all.peak_bytes - floor) / 100 * state.range(0);
  ChainSolution found;
  for (auto _ : state) {
    found = solve_chain(chain);
    benchmark::DoNotOptimize(found);
  }
  std::int64_t step_ns = 0;
  for (const ChainBlock& block : chain.blocks) step_ns += block.forward_ns + block.backward_ns;
  const auto percent = [&](std::int64_t part) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(step_ns);
  };
  state.counters["options"] = static_cast<double>(chain.classes[0].size());
  state.counters["budget_GB"] = static_cast<double>(chain.budget_bytes) / 1e9;
  state.counters["greedy_%"] = percent(found.greedy_ns);
  state.counters["found_%"] = percent(found.cost.extra_ns);
  state.counters["bound_%"] = percent(found.lower_bound_ns);
  state.counters["proven"] = found.proven ? 1 : 0;
  state.counters["effort"] = static_cast<double>(found.effort);
}

void budgets(benchmark::internal::Benchmark* benchmark) {
  for (const int percent : {2, 10, 30, 60, 90}) benchmark->Args({percent, 20});
  for (const int percent : {2, 10}) benchmark->Args({percent, 1000});
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(solve, 7B, k7B)->Apply(budgets);
BENCHMARK_CAPTURE(solve, 70B, k70B)->Apply(budgets);
BENCHMARK_CAPTURE(solve, 128_blocks, kLong)->Apply(budgets);

}  // namespace
}  // namespace strata::runtime
