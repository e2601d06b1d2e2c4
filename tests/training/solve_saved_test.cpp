// Compares the answers of plan::solve_saved with compiled and simulated steps of GPT-2 and Llama.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "machine/hardware_file.h"
#include "plan/chain_of_model.h"
#include "plan/foresee.h"
#include "plan/solve_saved.h"
#include "runtime/chain/chain_cost.h"
#include "tests/training/ranks.h"
#include "train/config/make_plan.h"

namespace strata::tests {
namespace {

using plan::Again;
using runtime::SavedAction;
using runtime::Tier;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

train::ModelConfig in_size(train::ModelConfig model, int layers) {
  model.layers = layers;
  model.vocabulary = 1000;
  model.hidden = 128;
  model.heads = model.kv_heads = 2;
  model.head_size = 64;
  model.intermediate = 512;
  model.context = 256;
  return model;
}

/// A way of training, and where.
struct Setting {
  std::string name;
  train::ModelConfig model;
  std::string hardware = {};  ///< empty: a CPU
  int ranks = 1, stage = 0, accumulation = 1;
  int virtual_ranks = 0;
  bool by_layer = false;
  bool offload = false;           ///< of optimizer state
  std::int64_t frozen_units = 0;  ///< the first ones
  std::int64_t host_bytes = 0;    ///< for saved values
  bool disk = false;

  /// Prints a name for test reports.
  friend void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }
};

std::vector<Setting> settings() {
  const train::ModelConfig gpt2 = in_size(tiny_gpt2(), 4), llama = in_size(tiny_llama(), 5);
  return {
      {"gpt2", gpt2},
      {.name = "llama, accumulated", .model = llama, .accumulation = 3},
      {.name = "llama, by layer", .model = llama, .accumulation = 2, .by_layer = true},
      {.name = "gpt2, virtual ranks", .model = gpt2, .virtual_ranks = 4},
      {.name = "llama, stage 3", .model = llama, .ranks = 2, .stage = 3},
      {.name = "gpt2, frozen", .model = gpt2, .frozen_units = 3},
      {.name = "gpt2, stage 3, H100", .model = gpt2, .hardware = "h100", .ranks = 2, .stage = 3},
      {.name = "llama, host memory", .model = llama, .hardware = "h100", .host_bytes = 64 * kMiB},
      {.name = "llama, disk",
       .model = llama,
       .hardware = "h100",
       .host_bytes = 8 * kMiB,
       .disk = true},
      {.name = "llama, optimizer on the host",
       .model = llama,
       .hardware = "h100",
       .offload = true,
       .host_bytes = 64 * kMiB}};
}

class SolveSaved : public testing::TestWithParam<Setting> {
 protected:
  SolveSaved() {
    const Setting& setting = GetParam();
    machine_ = setting.hardware.empty() ? machine::cpu_machine(2)
                                        : machine::load_hardware(setting.hardware);
    where_ = comm::MeshSeat::of(
        {0, setting.ranks,
         setting.ranks > 1 ? comm::Exchange::native_messages : comm::Exchange::none});
    request_.model = setting.model;
    train::TrainOptions& options = request_.options;
    const int leaves = std::max(setting.ranks, setting.virtual_ranks);
    options = tiny_options(setting.ranks, 2 * leaves * setting.accumulation, 1);
    options.virtual_ranks = setting.virtual_ranks;
    options.micro_batch = 2;
    options.accumulation = setting.accumulation;
    options.sequence_length = 128;
    options.zero.stage = setting.stage;
    if (setting.offload) options.offload.optimizer = plan::Home::host;
    model_ = train::training_model(request_);
  }

  [[nodiscard]] runtime::Plan plan(Again again, double part) const {
    plan::Choices choices = train::choices_of(request_.options);
    choices.again = again;
    choices.again_part = part;
    choices.layer_major = GetParam().by_layer;
    runtime::Plan plan = plan::with_choices(
        train::requested_frame(request_, machine_, GetParam().ranks), choices, model_.build);
    for (std::int64_t u = 0; u < GetParam().frozen_units; ++u)
      plan.units[static_cast<std::size_t>(u)].recipe.trainable = false;
    return plan;
  }

  [[nodiscard]] plan::SavedProblem problem(const runtime::Plan& plan, std::int64_t budget) const {
    return {.model = model_,
            .plan = plan,
            .machine = machine_,
            .where = where_,
            .device_bytes = budget,
            .host_bytes = GetParam().host_bytes,
            .may_use_disk = GetParam().disk};
  }

  /// A compiled step under a budget of the device.
  struct Step {
    bool fits = false;
    std::int64_t device_bytes = 0, pinned_bytes = 0;
    double seconds = std::numeric_limits<double>::max();
  };
  [[nodiscard]] Step step(runtime::Plan plan, std::int64_t budget) const {
    plan.budget_bytes[static_cast<std::size_t>(Tier::device)] = budget;
    const compile::Compiled compiled = compile::compile(model_, plan, machine_, where_);
    if (!compiled.fit.fits()) return {};
    verify_all(compiled.programs);
    return {true, compiled.programs.arena_bytes(Tier::device),
            compiled.programs.arena_bytes(Tier::pinned),
            plan::foresee(compiled.programs, machine_).step_seconds};
  }

  /// Plans that people ask for in a word.
  [[nodiscard]] std::vector<runtime::Plan> plain_plans() const {
    std::vector<runtime::Plan> plans{plan(Again::nothing, 1), plan(Again::norms, 1)};
    for (int k = 1; k <= 16; ++k) plans.push_back(plan(Again::everything, k / 16.0));
    return plans;
  }

  /// Transfers, where they are scheduled, fit beside computation in one Plan better than in another
  /// by more than a few instructions of these small models take.
  [[nodiscard]] static double tolerance() {
    const Setting& setting = GetParam();
    return setting.ranks > 1 || setting.offload || setting.host_bytes > 0 ? 1.02 : 1 + 1e-9;
  }

  machine::Machine machine_;
  comm::MeshSeat where_;
  train::ProgramRequest request_;
  compile::TrainingModel model_;
};

/// The most bytes that are in use at one time in a Program, without holes between buffers.
std::int64_t live_bytes(const compile::StepPrograms& programs) {
  std::int64_t most = 0;
  for (const auto& [key, program] : programs.programs)
    most = std::max(most, program.live_bytes[static_cast<std::size_t>(Tier::device)]);
  return most;
}

TEST_P(SolveSaved, TheChainKnowsBytesAndTimesOfPlainChoices) {
  const runtime::Plan kept = plan(Again::nothing, 1);
  const plan::SavedProblem asked = problem(kept, runtime::kUnlimited);
  plan::ModelChain chain = plan::chain_of_model(asked);
  chain.chain.budget_bytes = std::int64_t{1} << 48;
  const std::vector<runtime::ChainChoice> choices = chain.plain_choices();
  ASSERT_GT(choices.size(), 10u);
  double kept_seconds = 0;
  for (const runtime::ChainChoice& choice : choices) {
    const runtime::ChainCost cost = runtime::chain_cost(chain.chain, choice);
    const compile::StepPrograms programs =
        plan::compile_unscheduled(asked, chain.actions(choice)).programs;
    const auto live = static_cast<double>(live_bytes(programs));
    const auto peak =
        static_cast<double>(cost.peak_bytes + chain.base_bytes - chain.persistent_bytes);
    EXPECT_GE(peak, 0.99 * live);
    EXPECT_LE(peak, 1.05 * live);
    const double seconds = plan::foresee(programs, machine_).step_seconds;
    if (&choice == &choices.front()) kept_seconds = seconds;
    if (chain.has_transfers) continue;  // computation hides more of them if it takes longer
    const double extra = 1e-9 * static_cast<double>(cost.extra_ns * chain.runs);
    EXPECT_NEAR(extra, seconds - kept_seconds, 1e-4 * kept_seconds);
  }
}

TEST_P(SolveSaved, MeasuresAPlanThatReadsRecordsAhead) {
  runtime::Plan ahead = plan(Again::nothing, 1);
  ahead.read_ahead_bytes = kMiB;  // only schedules can
  EXPECT_TRUE(
      plan::compile_unscheduled(problem(ahead, runtime::kUnlimited), ahead.saved).fit.fits());
}

TEST_P(SolveSaved, FitsEveryBudgetAndIsNoSlowerThanPlainWays) {
  const std::vector<runtime::Plan> plain = plain_plans();
  const auto least_bytes = [&](runtime::Plan plan) {
    plan.scheduled = false;
    return step(plan, runtime::kUnlimited).device_bytes;
  };
  const std::int64_t most = least_bytes(plain.front()), least = least_bytes(plain.back());
  const std::int64_t pinned_before = step(plain.front(), runtime::kUnlimited).pinned_bytes;
  double before = std::numeric_limits<double>::max();
  for (int k = 0; k <= 4; ++k) {
    SCOPED_TRACE("budget " + std::to_string(k) + " of 0 to 4");
    const std::int64_t budget = least + (most - least) * k / 4;
    const auto answer = plan::solve_saved(problem(plain.front(), budget));
    ASSERT_TRUE(answer);
    runtime::Plan planned = plain.front();
    planned.saved = answer->saved;
    const Step found = step(planned, budget);
    ASSERT_TRUE(found.fits);
    EXPECT_LE(found.device_bytes, budget);
    EXPECT_EQ(found.device_bytes, answer->peak_bytes);
    EXPECT_DOUBLE_EQ(found.seconds, answer->step_seconds);
    EXPECT_LE(found.pinned_bytes, pinned_before + GetParam().host_bytes);
    EXPECT_LE(found.seconds, tolerance() * before);
    for (const runtime::Plan& other : plain)
      EXPECT_LE(found.seconds, tolerance() * step(other, budget).seconds);
    before = found.seconds;
  }
}

TEST_P(SolveSaved, IsNoneWhereNothingFits) {
  const runtime::Plan kept = plan(Again::nothing, 1);
  const std::int64_t state = plan::chain_of_model(problem(kept, 0)).persistent_bytes;
  EXPECT_FALSE(plan::solve_saved(problem(kept, 0)));
  EXPECT_FALSE(plan::solve_saved(problem(kept, state)));
}

/// Returns the actions that occur in an answer.
std::set<SavedAction> actions_of(const std::vector<runtime::BlockActions>& saved) {
  std::set<SavedAction> found;
  for (const runtime::BlockActions& blocks : saved)
    for (const auto& [name, action] : blocks.actions) found.insert(action);
  return found;
}

TEST_P(SolveSaved, DoesNothingThatItMayNotDo) {
  const runtime::Plan kept = plan(Again::nothing, 1);
  const std::int64_t most = step(kept, runtime::kUnlimited).device_bytes;
  const std::int64_t state = plan::chain_of_model(problem(kept, 0)).persistent_bytes;
  plan::SavedProblem asked = problem(kept, state + (most - state) * 7 / 8);
  asked.may_leave = false;
  const auto again = plan::solve_saved(asked);
  ASSERT_TRUE(again);
  EXPECT_EQ(actions_of(again->saved), (std::set{SavedAction::keep, SavedAction::recompute}));
  asked.may_recompute = false;
  EXPECT_FALSE(plan::solve_saved(asked));
  asked.may_leave = true;
  const auto away = plan::solve_saved(asked);
  ASSERT_EQ(away.has_value(), GetParam().host_bytes > 0);
  if (!away) return;
  std::set<SavedAction> found = actions_of(away->saved);
  EXPECT_FALSE(found.contains(SavedAction::recompute));
  EXPECT_TRUE(found.contains(SavedAction::host) || found.contains(SavedAction::disk));
  if (!GetParam().disk) {
    EXPECT_FALSE(found.contains(SavedAction::disk));
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, SolveSaved, testing::ValuesIn(settings()),
                         [](const testing::TestParamInfo<Setting>& of) {
                           std::string name;
                           for (const char c : of.param.name)
                             if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
                           return name;
                         });

}  // namespace
}  // namespace strata::tests
