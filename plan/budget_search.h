// Searches the alternatives of a run for the fastest, and for the smallest, under memory limits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "plan/alternatives.h"
#include "plan/find_plan.h"
#include "plan/foresee.h"
#include "plan/memory_needs.h"
#include "plan/solve_saved.h"
#include "plan/step_estimate.h"

namespace strata::plan {

/// The memory that one rank may take. Where the host is the device and device_bytes is unlimited,
/// host_bytes counts both.
struct MemoryLimits {
  std::int64_t device_bytes = runtime::kUnlimited;
  std::int64_t host_bytes = runtime::kUnlimited;
  std::int64_t disk_bytes = runtime::kUnlimited;

  bool operator==(const MemoryLimits&) const = default;
  [[nodiscard]] bool hold(const MemoryNeeds& needs, bool own_device) const;
  /// Returns what `needs` take beyond the limits, of each memory.
  [[nodiscard]] MemoryNeeds lacking(const MemoryNeeds& needs, bool own_device) const;
};

/// Choices with the Programs that they lead to, judged on the rank with the largest shards.
struct PlannedStep {
  Choices choices;
  MemoryLimits limits;  ///< under which they were compiled
  MemoryNeeds needs;
  Forecast forecast;
  runtime::Plan plan;
  std::int64_t disk_written_bytes = 0;  ///< by this rank, in a step
  bool is_settled = false;              ///< settled() returned it
};

/// A step before and after its saved values got actions; both are equal if they got none.
struct WithActions {
  PlannedStep by_share, step;
};

/// A compiled alternative, for telling what the search compared.
struct Attempt {
  Choices choices;
  double guessed_seconds = 0;
  std::optional<double> seconds;  ///< foreseen; nullopt: it does not fit
  std::string lacks;              ///< what it lacks then
};

/// Each alternative goes through stages, each dearer than the one before: a guess from parts that
/// were compiled once (StepEstimates); where the host is the device, a bound by compiling without a
/// schedule; Programs compiled once; Programs as a run would search for them. What may be fastest
/// goes on first, and what is guessed to be slower than the best goes no further. Programs that are
/// compared are rough (compile::Effort); settled() compiles what was chosen in full.
class BudgetSearch {
 public:
  /// Borrows `search`. Throws InvalidArgument if `asked` contradicts itself. `most_work`:
  /// compile::Compiled::work of what one search for the fastest step compiles; it ends there with
  /// the best that it has. All searches together end at three times as much.
  BudgetSearch(const Search& search, const Choices& asked, const Freedom& free,
               std::int64_t most_work);

  /// Returns a search that has been asked nothing yet: this one has learned from the limits that it
  /// was asked for. What was compiled for estimates is known to both.
  [[nodiscard]] BudgetSearch anew() const;

  /// Returns the fastest step that fits, as far as it is found with the work that is left.
  [[nodiscard]] std::optional<PlannedStep> fastest(const MemoryLimits& limits);
  /// Returns that step and then others that were compiled for it, those first that are faster.
  [[nodiscard]] std::vector<PlannedStep> fastest_ones(const MemoryLimits& limits);
  /// Returns a step that fits and takes at most so many seconds, in general the first that is
  /// found.
  [[nodiscard]] std::optional<PlannedStep> fast_enough(const MemoryLimits& limits, double seconds);
  /// Returns the step that needs least of the scarce memory, of those that lack least of the other
  /// memories; it may exceed `limits`, and has no Plan if no schedule of it was found. Which
  /// choices it has depends on the limits of other memories alone; of more of these it needs no
  /// more.
  [[nodiscard]] std::optional<PlannedStep> smallest(const MemoryLimits& limits);
  /// Returns choices for which fewest memories of `limits` are too small, by fewest bytes, and what
  /// they need, without a Plan. Only where the device has its own memory.
  [[nodiscard]] std::optional<PlannedStep> nearest(const MemoryLimits& limits);
  /// Returns the fastest of `steps`, which are the best first, if those for which that is promising
  /// get an action for each saved value of each layer in place of recomputation by share and one
  /// home for all: where that is worth it, the step is faster by half a percent or more.
  [[nodiscard]] WithActions with_actions(const std::vector<PlannedStep>& steps);
  /// Compiles as a run would; nullopt if that does not fit.
  [[nodiscard]] std::optional<PlannedStep> fitting_step(
      const Choices& choices, const MemoryLimits& limits,
      compile::Effort effort = compile::Effort::full);
  /// The same by rough Programs, listed among the attempts.
  [[nodiscard]] std::optional<PlannedStep> attempted_step(const Choices& choices,
                                                          const MemoryLimits& limits) {
    return attempted(choices, limits, estimates_->guess(choices).seconds);
  }
  /// Returns `step`, which rough Programs led to, with those that a run would make.
  [[nodiscard]] PlannedStep settled(PlannedStep step);
  /// False if the search under way has done its work; then it is not complete, either.
  [[nodiscard]] bool may_work();
  /// Returns the seconds of a step, with a charge where it writes to a drive, which wears, and
  /// where it gives other bits than what was asked for.
  [[nodiscard]] double price_of(const PlannedStep& step) const;

  [[nodiscard]] bool fits(const MemoryNeeds& needs, const MemoryLimits& limits) const;
  /// False if state alone, or what is guessed with a wide margin, is too much.
  [[nodiscard]] bool may_fit(const Choices& choices, const MemoryLimits& limits);
  [[nodiscard]] bool has_bits_asked_for(const Choices& choices) const;
  /// Returns the guess of what choices need, with what compiling such choices has corrected.
  [[nodiscard]] MemoryNeeds corrected_guess(const Choices& choices);
  [[nodiscard]] StepEstimates& estimates() { return *estimates_; }
  /// Work on Programs beside those of estimates.
  [[nodiscard]] std::int64_t work_beside_estimates() const { return compiled_; }
  [[nodiscard]] std::int64_t work() const { return estimates_->work() + compiled_; }
  /// Returns all alternatives that were compiled so far, in order.
  [[nodiscard]] const std::vector<Attempt>& attempts() const { return attempts_; }
  /// False if a search ended because of its work.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  struct Entry;
  struct Tried;
  struct Finalist;
  struct Quick;
  struct Small;
  /// Programs as a run would make them; without a step they do not fit: `fit` says why, or fits
  /// where drives are too small.
  struct Made {
    std::optional<PlannedStep> step;
    compile::Fit fit;
  };
  class Queue;

  template <typename NeedsOf>
  [[nodiscard]] std::optional<Choices> with_least_again(Choices choices, const MemoryLimits& limits,
                                                        const NeedsOf& needs_of) const;
  template <typename NeedsOf>
  [[nodiscard]] auto held_beside(MemoryLimits limits, const NeedsOf& needs_of) const;
  template <typename NeedsOf>
  [[nodiscard]] Choices with_part_held(const Choices& choices, const MemoryLimits& limits,
                                       const NeedsOf& needs_of) const;
  [[nodiscard]] std::vector<Choices> held_alternatives(const MemoryLimits& limits) const;
  [[nodiscard]] bool holds_listed_part(const Choices& choices, const MemoryLimits& limits);
  bool corrects_like(const Choices& choices);
  [[nodiscard]] std::optional<MemoryNeeds> lacking_like(const Choices& choices) const;
  [[nodiscard]] bool is_corrected(const Choices& choices) const;
  [[nodiscard]] Choices with_fastest_again(const Choices& choices);
  [[nodiscard]] std::optional<Choices> with_least_that_fits(const Choices& choices,
                                                            const MemoryLimits& limits);
  [[nodiscard]] std::optional<Entry> guessed_entry(const Choices& asked, std::size_t order,
                                                   const MemoryLimits& limits);
  [[nodiscard]] Made made(const Choices& choices, const MemoryLimits& limits,
                          compile::Effort effort);
  [[nodiscard]] double price_of(const Choices& choices, double seconds) const;
  [[nodiscard]] MemoryLimits roomy(MemoryLimits limits) const;
  [[nodiscard]] std::vector<Entry> guessed(const MemoryLimits& limits);
  bool set_bound(Entry& entry);
  bool set_held_bound(Entry& entry, const MemoryLimits& limits);
  [[nodiscard]] std::optional<Entry> bounded(Entry entry, const MemoryLimits& limits);
  [[nodiscard]] bool leaves_drive_empty(const Choices& choices);
  [[nodiscard]] bool divides(const MemoryLimits& limits) const;
  [[nodiscard]] Quick quickly(const Entry& entry, const MemoryLimits& limits);
  [[nodiscard]] std::optional<Entry> with_less_needed(const Entry& entry, const compile::Fit& fit,
                                                      const MemoryLimits& limits);
  [[nodiscard]] std::optional<PlannedStep> attempted(const Choices& choices,
                                                     const MemoryLimits& limits,
                                                     double guessed_seconds);
  [[nodiscard]] PlannedStep polished(PlannedStep best);
  [[nodiscard]] PlannedStep with_finer_part(PlannedStep best);
  [[nodiscard]] PlannedStep with_parameters_away(PlannedStep best);
  [[nodiscard]] PlannedStep with_less_offload(PlannedStep best, bool keeps_parameters);
  [[nodiscard]] bool may_get_actions(const Choices& choices) const;
  [[nodiscard]] std::optional<PlannedStep> with_solved(const PlannedStep& step, Choices kept,
                                                       double enough);
  [[nodiscard]] std::optional<SavedAnswer> solved(const PlannedStep& step, const Choices& kept);
  [[nodiscard]] bool is_dear_as_guessed(const Entry& entry, double price);
  [[nodiscard]] bool is_put_back(const Entry& entry, const MemoryLimits& limits, Queue& open);
  void put_back_tight(const Entry& entry, double least, double price, const MemoryLimits& limits,
                      Queue& open);
  [[nodiscard]] std::vector<Tried> try_all(const MemoryLimits& limits, double enough);
  [[nodiscard]] std::vector<Finalist> finalists(std::vector<Tried> tried,
                                                const MemoryLimits& limits);
  /// What memories that a budget does not name lack, then bytes of the one that it names.
  using LeastRank = std::pair<std::int64_t, std::int64_t>;
  [[nodiscard]] LeastRank least_rank(const MemoryNeeds& needs, const MemoryLimits& limits) const;
  template <typename NeedsOf, typename RankOf>
  [[nodiscard]] std::vector<Entry> small_guesses(const std::vector<Choices>& all,
                                                 const NeedsOf& needs_of,
                                                 const RankOf& rank_of) const;
  [[nodiscard]] PlannedStep without_plan(const Entry& entry, const MemoryNeeds& needs) const;
  [[nodiscard]] std::vector<Entry> small_bounds(const MemoryLimits& limits);
  [[nodiscard]] std::optional<Small> small_scheduled(const MemoryLimits& limits);
  [[nodiscard]] PlannedStep scheduled_smallest(const Small& least, const MemoryLimits& limits);
  [[nodiscard]] PlannedStep lowered(PlannedStep smallest, MemoryLimits tight,
                                    std::int64_t too_little);
  /// Returns the Programs of the Plan that find_plan finds for a rank like any other; they may not
  /// fit.
  [[nodiscard]] compile::Compiled find_programs(const Choices& choices, const MemoryLimits& limits,
                                                compile::Effort effort);
  [[nodiscard]] PlannedStep planned(const Choices& choices, const MemoryLimits& limits,
                                    const compile::Compiled& found) const;
  [[nodiscard]] runtime::Plan limited(const Choices& choices, const MemoryLimits& limits) const;

  const Search& search_;
  Freedom free_;
  bool own_device_;
  Choices asked_;
  std::int64_t most_work_;
  std::int64_t unasked_ = 0;                  ///< work that was done before anything was asked
  std::int64_t begun_ = 0;                    ///< work that was done before the search under way
  std::shared_ptr<StepEstimates> estimates_;  ///< of all that anew() returned
  std::vector<Choices> all_;
  std::int64_t compiled_ = 0;  ///< work on Programs beside those of estimates
  std::vector<Attempt> attempts_;
  std::vector<PlannedStep> seen_;         ///< that fit, of the search under way
  std::set<std::size_t> put_back_tight_;  ///< by order, of the search under way
  /// Memory that guesses lacked, by stage, order, micro-batch, homes of activations and parameters,
  /// and whether sums of gradients wait off the device: what one of them lacked, others with the
  /// same are likely to lack, too. Less than 0: they need less than was guessed.
  using LackKey = std::tuple<int, bool, std::int64_t, Home, Home, bool>;
  [[nodiscard]] static LackKey lack_key(const Choices& choices);
  std::map<LackKey, MemoryNeeds> lacking_;
  /// The fewest bytes of the device that guesses lacked, as schedules tell that did not fit with
  /// all recomputation that may be.
  std::map<LackKey, std::int64_t> least_lacking_;
  bool complete_ = true;
};

/// Returns the bytes whose budget is scarce: those on the device, or of the host if it is the
/// device.
std::int64_t scarce_bytes(const MemoryNeeds& needs, const machine::Machine& machine);

/// Returns `bytes` times `factor`; no limit stays none.
std::int64_t scaled(std::int64_t bytes, double factor);

}  // namespace strata::plan
