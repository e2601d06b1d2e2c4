#include "plan/solve_saved.h"

#include <algorithm>
#include <utility>

#include "plan/chain_of_model.h"
#include "plan/foresee.h"
#include "runtime/chain/chain_cost.h"
#include "runtime/chain/chain_solver.h"

namespace strata::plan {
namespace {

using runtime::ChainChoice;
using runtime::ChainSolution;
using runtime::Tier;

/// An answer whose arena exceeds the budget makes way for that of a smaller budget, so often.
constexpr int kMostAttempts = 6;
/// Schedules find more overlap in a few percent of memory beyond the least. These are the parts of
/// the memory for transient values that the chain gets: all of it, and 2^(-1/16) and 2^(-1/8), as
/// the rungs of a schedule's ladder are apart.
constexpr double kParts[] = {1, 0.9576, 0.917};
constexpr double kUsualPart = kParts[1];
constexpr std::int64_t kMostBudget = std::int64_t{1} << 48;  ///< of a Chain

class SavedSolver {
 public:
  explicit SavedSolver(const SavedProblem& problem)
      : problem_(problem), of_model_(chain_of_model(problem)), link_(of_model_.chain.link) {
    plain_ = of_model_.plain_choices();
  }

  std::optional<SavedAnswer> run() {
    for (const bool leaves : {false, true}) {
      if (leaves && !(problem_.may_leave && problem_.host_bytes > 0 && link_.exists())) continue;
      if (best_ && best_->extra_ns == 0 && !is_overlapped_) break;  // all is kept
      of_model_.chain.link = leaves ? link_ : runtime::CopyEngine{};
      is_overlapped_ = problem_.plan.scheduled && (leaves || of_model_.has_transfers);
      for (const double part : kParts)
        if (is_tried(part)) try_budget(part_of_budget(part));
    }
    if (!best_) try_plain_choices();
    return std::move(best_);
  }

  [[nodiscard]] std::int64_t work() const { return of_model_.work; }

 private:
  [[nodiscard]] bool is_tried(double part) const {
    if (!is_overlapped_) return part == 1;
    return problem_.thorough || part == kUsualPart;
  }

  [[nodiscard]] std::int64_t part_of_budget(double part) const {
    const std::int64_t transient = problem_.device_bytes - of_model_.persistent_bytes;
    if (part == 1 || transient <= 0 || transient > kMostBudget) return problem_.device_bytes;
    return of_model_.persistent_bytes +
           static_cast<std::int64_t>(part * static_cast<double>(transient));
  }

  /// Considers the chain's answer for a budget; where its arena is larger than the chain says,
  /// those for smaller ones; and where the chain says that nothing fits, the one that needs least,
  /// because the chain takes some positions for fuller than they are.
  void try_budget(std::int64_t budget) {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const ChainSolution found = solve(budget);
      if (!found.fits()) {
        if (found.floor_bytes >= 0) consider(solve(found.floor_bytes + of_model_.base_bytes));
        return;
      }
      const std::int64_t excess = consider(found);
      if (excess <= 0) return;
      budget -= excess;
    }
  }

  /// Holes between buffers, which no chain knows of, may be smaller in what people ask for in a
  /// word than in the chain's answers.
  void try_plain_choices() {
    of_model_.chain.budget_bytes = kMostBudget;
    is_overlapped_ = problem_.plan.scheduled && of_model_.has_transfers;
    for (auto plain = plain_.rbegin(); plain != plain_.rend() && !best_; ++plain) {
      const runtime::ChainCost cost = runtime::chain_cost(of_model_.chain, *plain);
      const std::int64_t peak = cost.peak_bytes + of_model_.base_bytes;
      if (peak - peak / 64 <= problem_.device_bytes) consider({.choice = *plain, .cost = cost});
    }
  }

  /// The chain counts from its base on.
  [[nodiscard]] ChainSolution solve(std::int64_t budget) {
    of_model_.chain.budget_bytes =
        std::clamp<std::int64_t>(budget - of_model_.base_bytes, 0, kMostBudget);
    return runtime::solve_chain(of_model_.chain, {}, plain_);
  }

  /// Keeps the answer if it fits and is the fastest so far. Returns by how many bytes it does not.
  std::int64_t consider(const ChainSolution& found) {
    SavedAnswer answer{of_model_.actions(found.choice), found.cost.extra_ns * of_model_.runs};
    if (std::ranges::find(considered_, answer.saved) != considered_.end()) return 0;
    compile::Compiled made = compile_unscheduled(problem_, answer.saved);
    of_model_.work += made.work;
    compile::StepPrograms& programs = made.programs;
    const std::int64_t least = programs.arena_bytes(Tier::device);
    if (least > problem_.device_bytes) return least - problem_.device_bytes;
    considered_.push_back(answer.saved);
    if (is_overlapped_) {
      compile::Compiled compiled = compile_scheduled(answer.saved);
      of_model_.work += compiled.work;
      if (compiled.fit.fits()) programs = std::move(compiled.programs);
    }
    answer.step_seconds = foresee(programs, problem_.machine).step_seconds;
    answer.peak_bytes = programs.arena_bytes(Tier::device);
    if (!best_ || answer.step_seconds < best_->step_seconds) best_ = std::move(answer);
    return 0;
  }

  [[nodiscard]] compile::Compiled compile_scheduled(
      const std::vector<runtime::BlockActions>& saved) const {
    runtime::Plan plan = problem_.plan;
    plan.saved = saved;
    plan.budget_bytes = runtime::kUnlimitedBytes;
    plan.budget_bytes[static_cast<std::size_t>(Tier::device)] = problem_.device_bytes;
    plan.host_bytes = runtime::kUnlimited;
    plan.shorter_sequences.clear();
    return compile::compile(problem_.model, plan, problem_.machine, problem_.where,
                            problem_.thorough ? compile::Effort::full : compile::Effort::rough);
  }

  const SavedProblem& problem_;
  ModelChain of_model_;
  runtime::CopyEngine link_;
  std::vector<ChainChoice> plain_;
  bool is_overlapped_ = false;  ///< transfers run beside computation
  std::vector<std::vector<runtime::BlockActions>> considered_;
  std::optional<SavedAnswer> best_;
};

}  // namespace

std::optional<SavedAnswer> solve_saved(const SavedProblem& problem, std::int64_t* work) {
  SavedSolver solver(problem);
  std::optional<SavedAnswer> answer = solver.run();
  if (work != nullptr) *work += solver.work();
  return answer;
}

}  // namespace strata::plan
