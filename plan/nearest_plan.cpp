#include "plan/nearest_plan.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "plan/neighbours.h"

namespace strata::plan {
namespace {

using Clock = std::chrono::steady_clock;

class Nearing {
 public:
  Nearing(const Search& search, const Choices& asked, const MachineMemory& memory,
          Clock::time_point until)
      : search_(search),
        asked_(asked),
        memory_(memory),
        until_(until),
        refused_(needs(asked, false)) {}

  NearestSearch run() {
    std::optional<Nearest> found = nearest();
    return {std::move(found), complete_};
  }

 private:
  [[nodiscard]] std::optional<Nearest> nearest() {
    const std::vector<Choices> here = cheapest_first(asked_, search_.plan);
    const bool moves = asked_.moves_state();
    // The last ones, which differ in the stage alone, tell whether there is anything to look for.
    const auto needs_least = std::ranges::find_if(here, [&](Choices choices) {
      choices.sharding.stage = here.back().sharding.stage;
      return choices == here.back();
    });
    if (auto last = first_that_fits({needs_least, here.end()}, moves)) {
      if (auto first = first_that_fits(here, moves)) return with_less_made_again(*first, moves);
      last->nearness = Nearness::fits;
      return last;
    }
    const bool own_device = memory_.device_bytes.has_value();
    if (auto first = first_that_fits(further_homes(asked_, search_.plan, own_device), true))
      return first;
    return smallest_;
  }

  [[nodiscard]] bool limits_host_memory(bool moves) const {
    return moves && memory_.host_bytes > 0 && search_.plan.host_bytes == runtime::kUnlimited;
  }

  /// Nothing where that cannot be planned, because it exceeds a budget or because choices exclude
  /// each other.
  [[nodiscard]] std::optional<MemoryNeeds> needs(const Choices& choices, bool limited) const {
    Search changed = search_;
    // Schedules take as much memory as they may have; what they need at least is known sooner.
    changed.plan.scheduled = !choices.moves_state();
    if (limited) changed.plan.host_bytes = memory_.host_bytes / memory_.local_world;
    try {
      changed.plan = with_choices(std::move(changed.plan), choices, search_.model.build);
      const compile::Compiled found = find_plan(changed);
      if (!found.fit.fits()) return {};
      return memory_needs(found.programs);
    } catch (const InvalidArgument&) {
      return {};  // choices exclude each other
    }
  }

  /// What was refused does not fit, whatever is said to be free, unless a limit is new.
  [[nodiscard]] bool fits(const MemoryNeeds& needs, bool limited) const {
    const bool less = !refused_ || limited || needs.device < refused_->device ||
                      memory_.host_share(needs) < memory_.host_share(*refused_);
    return less && memory_.holds(needs);
  }

  [[nodiscard]] std::optional<Nearest> first_that_fits(std::span<const Choices> neighbours,
                                                       bool moves) {
    const bool limited = limits_host_memory(moves);
    for (const Choices& choices : neighbours) {
      if (Clock::now() > until_) {
        complete_ = false;
        return {};
      }
      const std::optional<MemoryNeeds> needed = needs(choices, limited);
      if (!needed) continue;
      if (fits(*needed, limited)) return Nearest{choices, *needed, Nearness::cheapest};
      if (!smallest_ || size(*needed) < size(smallest_->needs))
        smallest_ = Nearest{choices, *needed, Nearness::smallest};
    }
    return {};
  }

  /// Where all that layers save is made again and was not before: the least part of it that fits,
  /// in sixteenths, by bisection: memory falls nearly steadily with the part.
  [[nodiscard]] Nearest with_less_made_again(Nearest found, bool moves) {
    constexpr int kParts = 16;
    const bool was = asked_.again == Again::everything;
    if (found.choices.again != Again::everything || (was && asked_.again_part == 1) ||
        found.choices.again_part < 1 || asked_.segments > 0)
      return found;
    const bool limited = limits_host_memory(moves);
    int too_little = was ? static_cast<int>(asked_.again_part * kParts) : 0, enough = kParts;
    while (enough - too_little > 1) {
      if (Clock::now() > until_) {
        found.nearness = Nearness::fits;
        break;
      }
      const int parts = (too_little + enough) / 2;
      Choices changed = found.choices;
      changed.again_part = static_cast<double>(parts) / kParts;
      const std::optional<MemoryNeeds> needed = needs(changed, limited);
      const bool suffices = needed && fits(*needed, limited);
      (suffices ? enough : too_little) = parts;
      if (suffices) found = {changed, *needed, found.nearness};
    }
    return found;
  }

  /// How many times what is free of the scarcer memory is needed; of unknown ones, bytes.
  [[nodiscard]] double size(const MemoryNeeds& needs) const {
    const auto times = [](std::int64_t needed, std::int64_t free) {
      return static_cast<double>(needed) / static_cast<double>(std::max<std::int64_t>(free, 1));
    };
    const double host = times(memory_.host_share(needs) * memory_.local_world, memory_.host_bytes);
    if (!memory_.device_bytes) return host;
    const double device = times(needs.device, *memory_.device_bytes);
    return memory_.host_bytes > 0 ? std::max(device, host) : device;
  }

  const Search& search_;
  const Choices& asked_;
  const MachineMemory& memory_;
  Clock::time_point until_;
  std::optional<MemoryNeeds> refused_;  ///< by what was asked for; nothing: cannot be planned
  std::optional<Nearest> smallest_;     ///< that was tried
  bool complete_ = true;
};

}  // namespace

NearestSearch find_nearest(const Search& search, const Choices& asked, const MachineMemory& memory,
                           Clock::time_point until) {
  return Nearing(search, asked, memory, until).run();
}

}  // namespace strata::plan
