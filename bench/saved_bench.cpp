// Chooses what becomes of saved values of models on one of eight H100: the time of measuring a
// model's chain (several compiles without a schedule), of solving it, and of both with the
// schedules of the answers. Arguments: 1 if values may leave the device; the budget, in percent of
// the way from the least to where all is kept.
#include <benchmark/benchmark.h>

#include "machine/hardware_file.h"
#include "plan/chain_of_model.h"
#include "plan/choices.h"
#include "plan/solve_saved.h"
#include "runtime/chain/chain_solver.h"
#include "train/config/make_plan.h"
#include "train/engine/build_programs.h"
#include "train/models/hf_config.h"
#include "train/models/presets.h"

namespace strata {
namespace {

constexpr int kRanks = 8;
constexpr std::int64_t kHostBytes = std::int64_t{100} << 30;

/// A model's training at ZeRO stage 3 on eight ranks.
class Asked {
 public:
  explicit Asked(bool large) : machine_(share_of_rank(machine::load_hardware("8xh100"), kRanks)) {
    request_.model = train::read_model_config(train::find_model_config("llama-2-7b"));
    if (large) {  // Llama 2 70B
      request_.model.layers = 80;
      request_.model.hidden = 8192;
      request_.model.heads = 64;
      request_.model.kv_heads = 8;
      request_.model.intermediate = 28672;
    }
    request_.local_ranks = kRanks;
    train::TrainOptions& options = request_.options;
    options.dtype = DType::bf16;
    options.sequence_length = 4096;
    options.micro_batch = 1;
    options.global_batch = kRanks;
    options.zero.stage = 3;
    model_ = train::training_model(request_);
    plan_ = train::requested_plan(request_, model_, machine_, kRanks);
  }
  [[nodiscard]] plan::SavedProblem problem(bool leaves) const {
    const comm::Seat seat{0, kRanks, comm::Exchange::native_messages};
    return {model_,
            plan_,
            machine_,
            comm::MeshSeat::of(seat),
            runtime::kUnlimited,
            leaves ? kHostBytes : 0};
  }

 private:
  machine::Machine machine_;
  train::ProgramRequest request_;
  compile::TrainingModel model_;
  runtime::Plan plan_;
};

/// Returns the bytes that are `percent` of the way from the chain's floor to where all is kept.
std::int64_t budget_at(runtime::Chain& chain, std::int64_t percent) {
  chain.budget_bytes = std::int64_t{1} << 48;
  const runtime::ChainSolution all = runtime::solve_chain(chain, {0});
  return all.floor_bytes + (all.cost.peak_bytes - all.floor_bytes) * percent / 100;
}

void measure(benchmark::State& state, bool large) {
  const Asked asked(large);
  for (auto _ : state)
    benchmark::DoNotOptimize(plan::chain_of_model(asked.problem(state.range(0) != 0)));
}

void solve(benchmark::State& state, bool large) {
  const Asked asked(large);
  plan::ModelChain of_model = plan::chain_of_model(asked.problem(state.range(0) != 0));
  const auto plain = of_model.plain_choices();
  of_model.chain.budget_bytes = budget_at(of_model.chain, state.range(1));
  runtime::ChainSolution found;
  for (auto _ : state) found = runtime::solve_chain(of_model.chain, {}, plain);
  std::int64_t ns = 0;
  for (const runtime::ChainBlock& block : of_model.chain.blocks)
    ns += block.forward_ns + block.backward_ns;
  const auto percent = [&](std::int64_t extra) {
    return 100 * static_cast<double>(extra) / static_cast<double>(ns);
  };
  state.counters["options"] = static_cast<double>(of_model.chain.classes.back().size());
  state.counters["extra_%"] = percent(found.cost.extra_ns);
  state.counters["bound_%"] = percent(found.lower_bound_ns);
  state.counters["proven"] = found.proven ? 1 : 0;
}

void whole(benchmark::State& state, bool large) {
  const Asked asked(large);
  plan::SavedProblem problem = asked.problem(state.range(0) != 0);
  plan::ModelChain of_model = plan::chain_of_model(problem);
  problem.device_bytes = of_model.base_bytes + budget_at(of_model.chain, state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(plan::solve_saved(problem));
}

void budgets(benchmark::internal::Benchmark* benchmark) {
  for (const int leaves : {0, 1})
    for (const int percent : {5, 30, 60}) benchmark->Args({leaves, percent});
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(measure, 7B, false)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure, 70B, true)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(solve, 7B, false)->Apply(budgets);
BENCHMARK_CAPTURE(solve, 70B, true)->Apply(budgets);
BENCHMARK_CAPTURE(whole, 7B, false)->Args({0, 30})->Args({1, 30})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace strata
