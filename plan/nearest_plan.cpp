#include "plan/nearest_plan.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "plan/gradient_homes.h"
#include "plan/held_part.h"
#include "plan/host_state.h"
#include "plan/neighbours.h"
#include "plan/unscheduled.h"
#include "step/check_plan.h"

namespace strata::plan {
namespace {

/// Rounds down to whole MiB, as people type it.
std::int64_t in_mebibytes(std::int64_t bytes) {
  constexpr std::int64_t kUnit = std::int64_t{1} << 20;
  return bytes < kUnit ? bytes : bytes / kUnit * kUnit;
}

class Nearing {
 public:
  Nearing(const Search& search, const Wanted& wanted, std::int64_t most_work)
      : search_(search),
        asked_(wanted.asked),
        memory_(wanted.memory),
        farthest_(wanted.farthest),
        most_work_(most_work),
        refused_(wanted.refused),
        units_(search.model.build(search.plan.shape, compile::ModelUse::train).graph.units) {
    if (refused_ && memory_.holds(state_needs(asked_))) refused_needs_ = least_needs(asked_, {});
  }

  NearestSearch run() {
    std::optional<Nearest> found = nearest();
    return {std::move(found), complete_};
  }

 private:
  [[nodiscard]] std::optional<Nearest> nearest() {
    const std::vector<Choices> here = cheapest_first(asked_, search_.plan);
    // The last ones differ in the stage alone and need least, so they tell whether to search.
    const auto needs_least = std::ranges::find_if(here, [&](Choices choices) {
      choices.sharding.stage = here.back().sharding.stage;
      return choices == here.back();
    });
    const auto fits =
        std::find_if(needs_least, here.end(), [&](const Choices& last) { return may_fit(last); });
    if (fits != here.end()) {
      const MemoryNeeds needs = fitting_needs_;
      const auto less_made_again = [&](const Choices& first) {
        return with_less_made_again(first);
      };
      if (auto first = first_that_fits(here, less_made_again)) return first;
      fitting_needs_ = needs;
      for (const Choices& last : std::span(fits, here.end()))
        if (auto found = as_planned(last, Nearness::fits)) return found;
    }
    const auto less_changed = [&](const Choices& first) { return with_less_changed(first); };
    if (auto first = first_that_fits(further_choices(), less_changed)) return first;
    try_put_off();
    return smallest_;
  }

  /// Returns the neighbours that move state; after each whose optimizer state is too much for host
  /// memory, the same with the largest share of it that may be held, and with a sixteenth less,
  /// since transfers need host memory, too.
  [[nodiscard]] std::vector<Choices> further_choices() const {
    constexpr double kLess = 1.0 / 16;
    const Reach reach{memory_.device_bytes.has_value(), farthest_};
    std::vector<Choices> all;
    for (const Choices& choices : further_homes(asked_, search_.plan, reach)) {
      all.push_back(choices);
      if (!reach.own_device || contradict(choices)) continue;
      std::optional<Choices> held = with_less_held(
          choices, [&](const Choices& some) { return state_fits_host_memory(some); });
      const double kept = choices.optimizer == asked_.optimizer ? asked_.optimizer_part : 0;
      for (int i = 0; i < 2 && held && held->optimizer_part > kept; ++i) {
        all.push_back(*held);
        held->optimizer_part -= kLess;
      }
    }
    return all;
  }

  /// True if host memory holds state alone, gradients on the disk if they may go there.
  [[nodiscard]] bool state_fits_host_memory(const Choices& choices) const {
    NewLimits limits;
    if (memory_.host_bytes > 0) limits.host_bytes = memory_.host_bytes;
    runtime::Plan plan = limited_frame(limits);
    plan.host_bytes = std::min(plan.host_bytes, search_.plan.host_bytes);
    return !lacks_host_memory(with_choices(std::move(plan), choices, units_));
  }

  /// Returns all limits that the Plan may need in addition.
  [[nodiscard]] NewLimits new_limits(const Choices& choices) const {
    NewLimits limits;
    if (!choices.moves_state()) return limits;
    const runtime::Plan& frame = search_.plan;
    if (const auto device = memory_.device_bytes;
        device && *device < frame.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)])
      limits.device_bytes = in_mebibytes(*device);
    const std::int64_t host = memory_.host_bytes;
    if (host > 0 && host / memory_.local_world < frame.host_bytes)
      limits.host_bytes = in_mebibytes(host);
    return limits;
  }

  /// Returns the frame with these limits.
  [[nodiscard]] runtime::Plan limited_frame(const NewLimits& limits) const {
    runtime::Plan plan = search_.plan;
    if (limits.device_bytes)
      plan.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)] = *limits.device_bytes;
    if (limits.host_bytes) plan.host_bytes = *limits.host_bytes / memory_.local_world;
    return plan;
  }

  [[nodiscard]] Search search_for(const Choices& choices, const NewLimits& limits) const {
    Search changed = search_;
    changed.plan = with_choices(limited_frame(limits), choices, search_.model.build);
    return changed;
  }

  /// True if the choices exclude each other.
  [[nodiscard]] bool contradict(const Choices& choices) const {
    const auto rules = kernels::StepRules::from(search_.model.control);
    return !step::find_problems(with_choices(search_.plan, choices, units_), units_, &rules)
                .empty();
  }

  /// Returns the memory that state alone takes, without compiling. Leaves out gradients in host
  /// memory, since the search may move them to the disk.
  [[nodiscard]] MemoryNeeds state_needs(const Choices& choices) const {
    using enum runtime::Tier;
    runtime::PersistentLayout state;
    const runtime::Plan plan = with_choices(search_.plan, choices, units_);
    step::declare_state(state, units_, compile::settings_of(search_.model, plan, search_.where));
    MemoryNeeds needs;
    for (const runtime::PersistentValue& value : state.values()) {
      const std::int64_t bytes = value.type.span_bytes();
      if (value.tier == device) needs.device += bytes;
      if (value.tier == disk) needs.disk += bytes;
      if ((value.tier == pinned || value.tier == pageable) && value.role != runtime::Role::gradient)
        needs.host += bytes;
    }
    return needs;
  }

  /// True if state alone exceeds the limit, also with gradients on the disk.
  [[nodiscard]] bool lacks_host_memory(const runtime::Plan& plan) const {
    const auto exceeds = [&](const runtime::Plan& some) {
      return state_exceeds_host_memory(units_,
                                       compile::settings_of(search_.model, some, search_.where));
    };
    if (!exceeds(plan)) return false;
    const std::optional<runtime::Plan> on_disk = with_gradients_on_disk(plan);
    return !on_disk || exceeds(*on_disk);
  }

  /// Returns the least memory that the choices need: without a schedule, since schedules take as
  /// much as they may. Nullopt if they exceed a budget.
  [[nodiscard]] std::optional<MemoryNeeds> least_needs(const Choices& choices,
                                                       const NewLimits& limits) {
    Search changed = search_for(choices, {.device_bytes = {}, .host_bytes = limits.host_bytes});
    changed.savings = {search_.savings.back()};
    changed.plan = unscheduled(std::move(changed.plan));
    if (lacks_host_memory(changed.plan)) return {};
    compile::Compiled found = find_plan(changed);
    work_ += found.work;
    work_of_one_ = found.work;
    found.fit.host = {};  // the sum over both is for holds() to judge
    if (!found.fit.fits()) return {};
    return memory_needs(found.programs);
  }

  /// Compiles the Plan as it is, since searching would take no less memory. Limits the device to
  /// the bytes that are free: fewer bytes compile faster.
  [[nodiscard]] compile::Compiled closed(const Search& search) {
    runtime::Plan plan = search.plan;
    std::int64_t& device = plan.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)];
    const std::int64_t free_bytes =
        memory_.device_bytes.value_or(memory_.host_bytes / memory_.local_world);
    if (free_bytes > 0) device = std::min(device, free_bytes);
    plan.saving = search.savings.back();
    compile::Compiled found = compile::compile(search.model, plan, search.machine, search.where);
    work_ += found.work;
    return found;
  }

  /// Plans as a run would do, with the first combination of new limits that makes it fit. If that
  /// is too much work, answers with all limits and the least needs, which may_fit found to fit.
  [[nodiscard]] std::optional<Nearest> as_planned(const Choices& choices, Nearness nearness) {
    const NewLimits all = new_limits(choices);
    const auto holds = [&](const compile::Compiled& found) {
      return found.fit.fits() && memory_.holds(memory_needs(found.programs));
    };
    for (const bool device : {false, true})
      for (const bool host : {false, true}) {
        if ((device && !all.device_bytes) || (host && !all.host_bytes)) continue;
        if (refused_ && choices == asked_ && !device && !host) continue;
        NewLimits limits;
        if (device) limits.device_bytes = all.device_bytes;
        if (host) limits.host_bytes = all.host_bytes;
        if (work_ + compile::kScheduledWork * work_of_one_ > most_work_) {
          complete_ = false;
          return Nearest{choices, all, fitting_needs_, Nearness::unplanned};
        }
        Search changed = search_for(choices, limits);
        const bool last =
            device == all.device_bytes.has_value() && host == all.host_bytes.has_value();
        if (!last && !holds(closed(changed))) continue;
        changed.accepts = holds;
        const compile::Compiled found = find_plan(changed);
        work_ += found.work;
        if (holds(found)) return Nearest{choices, limits, memory_needs(found.programs), nearness};
      }
    return {};
  }

  /// True if the memory holds `needs`. What was refused does not fit, whatever is said to be free.
  [[nodiscard]] bool holds(const MemoryNeeds& needs, const NewLimits& limits) const {
    const bool less = !refused_needs_ || limits.host_bytes || limits.device_bytes ||
                      needs.device < refused_needs_->device ||
                      memory_.host_share(needs) < memory_.host_share(*refused_needs_);
    return less && memory_.holds(needs);
  }

  /// True if least_needs fits; false also if no work is left. State alone tells of most neighbours
  /// of large models that they do not fit: what these need is put off.
  [[nodiscard]] bool may_fit(const Choices& choices) {
    complete_ = complete_ && work_ < most_work_;
    if (!complete_ || contradict(choices)) return false;
    const NewLimits limits = new_limits(choices);
    const MemoryNeeds state = state_needs(choices);
    if (!memory_.holds(state)) {
      put_off_.emplace_back(size(state), choices);
      return false;
    }
    std::optional<MemoryNeeds> needed = least_needs(choices, limits);
    if (!needed && limits.host_bytes) needed = least_needs(choices, {});  // too much for the limit
    if (!needed) return false;
    if (holds(*needed, limits)) {
      fitting_needs_ = *needed;
      return true;
    }
    consider_smallest(choices, *needed);
    return false;
  }

  void consider_smallest(const Choices& choices, const MemoryNeeds& needed) {
    if (!smallest_ || size(needed) < size(smallest_->needs))
      smallest_ = Nearest{choices, {}, needed, Nearness::smallest};
  }

  /// Compiles what was put off, as far as it may need less than all else that was tried.
  void try_put_off() {
    std::ranges::stable_sort(put_off_, {}, &std::pair<double, Choices>::first);
    for (const auto& [least, choices] : put_off_) {
      if (smallest_ && least >= size(smallest_->needs)) return;
      complete_ = complete_ && work_ < most_work_;
      if (!complete_) return;
      if (const auto needed = least_needs(choices, {})) consider_smallest(choices, *needed);
    }
  }

  /// Returns the first neighbour that fits: as `reduced` makes it if that fits, else as it is.
  template <typename Reduce>
  [[nodiscard]] std::optional<Nearest> first_that_fits(const std::vector<Choices>& neighbours,
                                                       const Reduce& reduced) {
    for (const Choices& choices : neighbours) {
      if (!may_fit(choices)) continue;
      const MemoryNeeds needs = fitting_needs_;
      const Choices less = reduced(choices);
      const Nearness nearness = complete_ ? Nearness::cheapest : Nearness::fits;
      if (auto found = as_planned(less, nearness)) return found;
      if (less == choices) continue;
      fitting_needs_ = needs;
      if (auto found = as_planned(choices, nearness)) return found;
    }
    return {};
  }

  /// Takes back one part of the change after another, as long as the rest fits.
  [[nodiscard]] Choices with_less_changed(Choices changed) {
    const bool own_device = memory_.device_bytes.has_value();
    for (const Part part : kParts) {
      const std::vector<Choices> less = with_less(part, changed, asked_, own_device);
      const auto first =
          std::ranges::find_if(less, [&](const Choices& choices) { return may_fit(choices); });
      if (first != less.end()) changed = *first;
    }
    return changed;
  }

  /// Finds the smallest share, in sixteenths, of what layers save that must be recomputed to fit,
  /// if all of it is recomputed and was not before. Bisects, because memory falls nearly steadily
  /// with the share.
  [[nodiscard]] Choices with_less_made_again(Choices changed) {
    constexpr int kSixteenths = 16;
    const bool was = asked_.again == Again::everything;
    if (changed.again != Again::everything || (was && asked_.again_part == 1) ||
        changed.again_part < 1 || asked_.layer_runs > 0)
      return changed;
    int too_little = was ? static_cast<int>(asked_.again_part * kSixteenths) : 0,
        enough = kSixteenths;
    while (enough - too_little > 1) {
      const int parts = (too_little + enough) / 2;
      Choices less = changed;
      less.again_part = static_cast<double>(parts) / kSixteenths;
      const bool suffices = may_fit(less);
      (suffices ? enough : too_little) = parts;
      if (suffices) changed = less;
    }
    return changed;
  }

  /// Returns needed over free bytes of the scarcer memory; needed bytes if those are not known.
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
  Home farthest_;
  std::int64_t most_work_;
  std::int64_t work_ = 0;
  std::int64_t work_of_one_ = 0;  ///< to compile a Plan without a schedule
  bool refused_;
  std::vector<runtime::ParameterUnit> units_;
  std::optional<MemoryNeeds> refused_needs_;         ///< nullopt: it cannot be planned
  std::optional<Nearest> smallest_;                  ///< smallest needs that were tried
  MemoryNeeds fitting_needs_;                        ///< least needs of what last was found to fit
  std::vector<std::pair<double, Choices>> put_off_;  ///< with the size of its state
  bool complete_ = true;
};

}  // namespace

NearestSearch find_nearest(const Search& search, const Wanted& wanted, std::int64_t most_work) {
  return Nearing(search, wanted, most_work).run();
}

}  // namespace strata::plan
