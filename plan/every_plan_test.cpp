// The planner beside every Plan of small instances drawn by a seed: all are compiled and simulated.
// STRATA_INSTANCES is the number of instances (24); the seconds of each are printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "plan/alternatives.h"
#include "plan/foresee.h"
#include "plan/memory_needs.h"
#include "plan/planner.h"
#include "plan/step_estimate.h"
#include "plan/testing/small_training.h"
#include "plan/widest_seat.h"

namespace strata::plan {
namespace {

using runtime::kUnlimited;
using runtime::Tier;

/// Whoever compiles all alternatives waits for each.
constexpr std::size_t kMostAlternatives = 40;

struct Instance {
  compile::TrainingModel model;
  machine::Machine machine;
  runtime::Plan frame;
  Choices asked;
  Freedom free;
  double place = 0;  ///< of the budget between the least, 0, and that of the fastest step, 1

  /// As the rank with the largest shards has it.
  [[nodiscard]] Search search() const {
    return {model, frame, machine, widest_seat({frame.mesh, {}})};
  }
};

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : bits_(seed) {}
  int below(int end) { return static_cast<int>(bits_() % static_cast<std::uint32_t>(end)); }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }

 private:
  std::mt19937 bits_;
};

Instance draw_instance(Draw& draw) {
  Instance drawn;
  drawn.model = small_training(draw.one_of({2, 3, 4, 6}));
  drawn.machine = small_gpu();
  machine::Machine& machine = drawn.machine;
  const auto scale = [&](machine::Figure& figure) {
    figure = machine::assumed(figure * draw.one_of({0.25, 1.0, 4.0}));
  };
  scale(machine.device.fp32_flops);
  scale(machine.link.to_device);
  machine.link.to_host = machine.link.to_device;
  scale(machine.memory.bytes_per_second);
  scale(machine.disk.read_rate);
  machine.disk.write_rate = machine.disk.read_rate;
  const int ranks = draw.one_of({1, 1, 2});
  drawn.frame = small_frame(ranks);
  drawn.frame.backend = machine.device.capabilities.backend;
  drawn.asked.micro_batch = draw.one_of({1, 2, 4});
  drawn.asked.micro_steps = draw.one_of({1, 2, 4});
  for (bool* open :
       {&drawn.free.micro_batch, &drawn.free.stage, &drawn.free.order, &drawn.free.sums,
        &drawn.free.optimizer, &drawn.free.parameters, &drawn.free.activations})
    *open = draw.below(2) == 0;
  drawn.free.farthest = draw.one_of({Home::device, Home::host, Home::disk});
  drawn.place = draw.below(100) / 100.0;
  return drawn;
}

PlannerAnswer plan_under(const Instance& instance, std::int64_t bytes) {
  Instance limited = instance;
  limited.frame.budget_bytes[static_cast<std::size_t>(Tier::device)] = bytes;
  return plan_for_budget({.search = limited.search(),
                          .asked = limited.asked,
                          .free = limited.free,
                          .strategy = Strategy::balanced,
                          .disk_bytes = kUnlimited,
                          .most_work = 20'000'000});
}

/// Returns the seconds of the fastest step with which `bytes` are kept; infinite if none keeps
/// them.
double fastest_of_all(const Instance& instance, std::int64_t bytes) {
  Instance limited = instance;
  limited.frame.budget_bytes[static_cast<std::size_t>(Tier::device)] =
      std::llround(share_of_budget(Strategy::balanced) * static_cast<double>(bytes));
  double best = std::numeric_limits<double>::infinity();
  const Search search = limited.search();
  const StepEstimates estimates(search, limited.asked);
  std::vector<Choices> all = alternatives(limited.asked, limited.free, limited.frame, true);
  all.push_back(limited.asked);
  for (Choices choices : all)
    for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      set_again_part(choices, part);
      if (!estimates.problems(choices).empty()) continue;
      Search one = search;
      one.plan = with_choices(limited.frame, choices, limited.model.build);
      const compile::Compiled found = find_plan(one);
      if (found.fit.fits())
        best = std::min(best, foresee(found.programs, limited.machine).step_seconds);
    }
  return best;
}

/// Returns the budget of an instance; nullopt if nothing binds between least and fastest.
std::optional<std::int64_t> budget_of(const Instance& instance) {
  const PlannerAnswer least = plan_under(instance, 1), most = plan_under(instance, kUnlimited);
  if (!least.smallest || !most.unlimited) return {};
  const auto bytes = [&](const PlannedStep& step) {
    return static_cast<double>(scarce_bytes(step.needs, instance.machine));
  };
  const double low = 1.03 * bytes(*least.smallest);  // 2 % stay free
  const double high = bytes(*most.unlimited);
  if (low >= high) return {};
  return std::llround(low * std::pow(high / low, instance.place));
}

int instances_asked_for() {
  const char* text = std::getenv("STRATA_INSTANCES");
  return text != nullptr ? std::atoi(text) : 24;
}

TEST(EveryPlan, ThePlannerComesCloseToTheFastestOfAll) {
  Draw draw(17);
  const int count = instances_asked_for();
  double sum = 0, worst = 0;
  for (int compared = 0; compared < count;) {
    const Instance instance = draw_instance(draw);
    const std::vector<Choices> all =
        alternatives(instance.asked, instance.free, instance.frame, true);
    if (all.size() < 2 || all.size() > kMostAlternatives) continue;
    const std::optional<std::int64_t> budget = budget_of(instance);
    if (!budget) continue;
    const PlannerAnswer answer = plan_under(instance, *budget);
    if (answer.is_asked) continue;  // what fits as it is stays
    const double fastest = fastest_of_all(instance, *budget);
    // The planner may find finer shares, and actions for each saved value.
    EXPECT_TRUE(answer.chosen || !std::isfinite(fastest)) << compared;
    if (!answer.chosen || !std::isfinite(fastest)) continue;
    const double ratio = answer.chosen->forecast.step_seconds / fastest;
    std::printf("%d: %zu alternatives, %.6f s, fastest of all %.6f s, ratio %.4f\n", compared,
                all.size(), answer.chosen->forecast.step_seconds, fastest, ratio);
    sum += ratio;
    worst = std::max(worst, ratio);
    ++compared;
  }
  std::printf("%d instances: mean %.4f, worst %.4f\n", count, sum / count, worst);
  EXPECT_LE(sum / count, 1.005);
  EXPECT_LE(worst, 1.05);  // of 200; all others are within 1.02
}

}  // namespace
}  // namespace strata::plan
