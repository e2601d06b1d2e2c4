// Prices changes of settings: the memory and the time that each of them alone saves or costs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/alternatives.h"
#include "plan/budget_search.h"

namespace strata::plan {

/// The settings that a planner makes.
enum class Setting : std::uint8_t {
  stage,
  micro_batch,
  saved,  ///< what layers recompute, or an action for each saved value
  activations,
  parameters,
  optimizer,
  order,
  sums,      ///< home of gradients' sums between micro-steps
  farthest,  ///< how far from the device state may go
  all,       ///< all of these
};
std::string_view name_of(Setting setting);

/// The effect of a change: the difference of two estimates, in which an error common to both
/// cancels.
struct PricedChange {
  Setting setting = Setting::stage;
  Choices choices;             ///< with the change
  MemoryNeeds more;            ///< that they need, beyond what is needed without; negative: less
  MemoryNeeds needs;           ///< what they need in all
  double seconds = 0;          ///< of a step, beyond those without; negative: fewer
  double without_seconds = 0;  ///< of a step without the change
  bool fits = true;            ///< as far as guesses tell
  bool contradicts = false;    ///< other choices exclude it, and nothing else is known
  bool is_compiled = false;    ///< Programs were compiled for it; else it is guessed

  /// Returns by which part of its time a step becomes slower.
  [[nodiscard]] double slowdown() const;
};

/// A step for its price. Guesses know no actions: `by_share` has the recomputation and the home
/// of saved values that its actions replaced, or is the same.
struct ChosenStep {
  Choices choices;
  Choices by_share;
  double gained_seconds = 0;  ///< by the actions
};

class PriceList {
 public:
  /// Borrows both. `limits`: for which changes fit.
  PriceList(StepEstimates& estimates, const Search& search, const MemoryLimits& limits);

  /// Says for each setting that `step` has otherwise than `asked` what it would do to take that
  /// back alone. `corrected`: what choices need, by guesses that compiled Programs corrected.
  [[nodiscard]] std::vector<PricedChange> taken_back(
      const ChosenStep& step, const Choices& asked,
      const std::function<MemoryNeeds(const Choices&)>& corrected);

  /// Returns the changes of a single setting, one step of it or all, that need notably less of the
  /// memory that `asked` lacks, whoever gave it, of state and saved values up to `farthest`, and
  /// for which other memories suffice. Those that save most bytes for their time come first.
  [[nodiscard]] std::vector<PricedChange> single_changes(const Choices& asked, Home farthest);

  /// Returns, for each setting that `free` does not free and that forbids what needs less than
  /// `smallest`, the least that choices need if it alone is freed, too; and the same for all of
  /// them if that is less still. By Programs that are compiled without a schedule.
  [[nodiscard]] std::vector<PricedChange> forbidden(const Choices& asked, const Freedom& free,
                                                    const Choices& smallest);

 private:
  [[nodiscard]] PricedChange priced(Setting setting, const Choices& choices,
                                    const StepEstimate& without);
  void set_price(PricedChange& change, const StepEstimate& with, const StepEstimate& without) const;
  [[nodiscard]] bool fits(const MemoryNeeds& needs) const;
  /// Returns the bytes of that memory whose lack is to be priced.
  [[nodiscard]] std::int64_t scarce(const MemoryNeeds& needs, bool host_is_short) const;
  [[nodiscard]] bool lacks_host_memory(const MemoryNeeds& needs) const;
  [[nodiscard]] std::vector<std::pair<Setting, Choices>> listed_changes(const Choices& asked,
                                                                        Home farthest) const;
  /// True if `more` are bytes of a memory beside the scarce one, and `needs` exceed that.
  [[nodiscard]] bool overfills_another(const MemoryNeeds& needs, const MemoryNeeds& more,
                                       bool host_is_short) const;
  /// Returns the bytes of host memory and drives that `needs` lack: no target gives these.
  [[nodiscard]] std::int64_t lacking_beside(const MemoryNeeds& needs) const;
  [[nodiscard]] bool hold_beside(const Choices& choices) const;
  [[nodiscard]] Choices with_all_held(const Choices& choices) const;
  [[nodiscard]] std::optional<StepEstimate> held_bound(Choices& choices, const Freedom& free);
  [[nodiscard]] std::optional<Choices> smallest_of(const Choices& asked, const Freedom& free,
                                                   const Choices& than);
  [[nodiscard]] bool is_less(const MemoryNeeds& needs, const MemoryNeeds& least) const;

  StepEstimates& estimates_;
  const Search& search_;
  MemoryLimits limits_;
  bool own_device_;
};

}  // namespace strata::plan
