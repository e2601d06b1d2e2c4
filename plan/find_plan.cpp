#include "plan/find_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "compile/read_ahead.h"
#include "core/check.h"
#include "plan/resident_records.h"
#include "runtime/program/arena_alignment.h"

namespace strata::plan {
namespace {

using compile::Compiled;
using runtime::Plan;
using runtime::SaveMemory;
using runtime::Tier;

/// Steps whose foreseen times are within this factor of one another count as equally fast: rates
/// are not known any better.
constexpr double kAsFast = 1.01;
/// One window is filled, one is on its way to the disk, and two keep both from waiting.
constexpr int kSnapshotWindows = 4;

bool has_records_on_disk(const Plan& plan) {
  return std::ranges::any_of(plan.units, [](const runtime::UnitPlan& unit) {
    return unit.recipe.trainable && unit.optimizer_tier == Tier::disk;
  });
}

/// Moves gradients from host memory to the disk for units that have other state on the disk;
/// nullopt if there are none.
std::optional<Plan> with_gradients_on_disk(Plan plan) {
  bool moved = false;
  for (runtime::UnitPlan& unit : plan.units) {
    if (unit.gradient_tier != Tier::pinned ||
        (unit.optimizer_tier != Tier::disk && unit.parameter_tier != Tier::disk))
      continue;
    unit.gradient_tier = Tier::disk;
    moved = true;
  }
  if (!moved) return {};
  return plan;
}

bool lacks_host_memory(const compile::Fit& fit) {
  return fit.kept_too_much || !fit.host.fits() ||
         (fit.shortage && fit.shortage->tier == Tier::pinned);
}

/// Returns a time that no order of the same instructions can beat, even if reads for the next step
/// move from one micro-step to another: the sum over Programs of what the busiest queue does. Reads
/// and writes of a disk count as one queue, because they take turns.
std::int64_t busiest_ns(const Compiled& found, const machine::Machine& machine) {
  std::array<std::int64_t, runtime::kQueues> busy{};
  for (const auto& [key, program] : found.programs.programs) {
    if (!key.is_train() || !program.is_scheduled) continue;
    for (const runtime::Instruction& in : program.instructions) {
      const bool writes = in.queue == runtime::Queue::disk_write;
      busy[static_cast<std::size_t>(writes ? runtime::Queue::disk_read : in.queue)] +=
          machine::foreseen_ns(machine, in.demand);
    }
  }
  return *std::ranges::max_element(busy);
}

class Searching {
 public:
  explicit Searching(const Search& search)
      : search_(search),
        widest_{search.where},
        units_(search.model.build(search.plan.shape, compile::ModelUse::train).graph.units) {
    const auto data = static_cast<std::size_t>(comm::MeshAxis::data);
    widest_.at.at[data] = widest_.mesh.sizes[data] - 1;
  }

  /// Moves gradients to the disk only if host memory is too little: a sum that stays in host memory
  /// need be neither written nor read again.
  Compiled run() const {
    Attempt attempt = first_accepted(search_.plan);
    if (attempt.lacks_host_memory)
      if (const std::optional<Plan> on_disk = with_gradients_on_disk(search_.plan))
        attempt = first_accepted(*on_disk);
    return std::move(attempt.found);
  }

 private:
  struct Attempt {
    Compiled found;
    /// Judged on the rank with the largest shards if something is open, so that all ranks agree.
    bool lacks_host_memory = false;
  };

  [[nodiscard]] Attempt first_accepted(const Plan& asked) const {
    STRATA_CHECK(!search_.savings.empty(), "no way of saving to try");
    const Accepts accepts =
        search_.accepts ? search_.accepts : [](const Compiled& found) { return found.fit.fits(); };
    for (std::size_t i = 0; i + 1 < search_.savings.size(); ++i)
      if (Attempt attempt = try_saving(asked, search_.savings[i]); accepts(attempt.found))
        return {std::move(attempt.found)};
    return try_saving(asked, search_.savings.back());
  }

  /// Compiles for the rank with the largest shards, the last one.
  [[nodiscard]] Compiled compiled(const Plan& plan) const {
    return compile::compile(search_.model, plan, search_.machine, widest_);
  }
  [[nodiscard]] step::StepSettings settings_of(const Plan& plan) const {
    return compile::settings_of(search_.model, plan, widest_);
  }
  [[nodiscard]] Compiled compiled_here(const Plan& plan) const {
    return compile::compile(search_.model, plan, search_.machine, search_.where);
  }

  /// Answers for the rank that asks. If nothing is open in the Plan, that rank alone is compiled.
  [[nodiscard]] Attempt try_saving(Plan plan, SaveMemory saving) const {
    plan.saving = saving;
    const bool shares = compile::shares_host_memory(plan);
    const bool open =
        plan.scheduled && (has_records_on_disk(plan) || saving == SaveMemory::windows ||
                           may_move_gradients(plan) || shares);
    Compiled found = !open ? compiled_here(plan) : shares ? divide(plan) : close(plan);
    const bool lacks = lacks_host_memory(found.fit);
    if (!open) return {std::move(found), lacks};
    if (!found.fit.fits() || widest_ == search_.where) return {std::move(found), lacks};
    return {compiled_here(found.programs.settings.plan)};
  }

  /// Divides the memory of a host that is the device. Schedules take all memory that makes them
  /// faster and know of no sum over tiers. So the device gets what its schedules take; if that is
  /// too much, its least need and half of what is left; else its least need. The host gets the
  /// rest. The Plan without a schedule says the least needs, and is returned if nothing else fits.
  [[nodiscard]] Compiled divide(const Plan& plan) const {
    Plan unscheduled = plan;
    unscheduled.scheduled = false;
    Compiled least = compiled(unscheduled);
    if (!least.fit.fits()) return least;
    const std::int64_t needed = least.programs.arena_bytes(Tier::device);
    const std::int64_t left = plan.host_bytes - compile::host_arena_bytes(least.programs);
    const bool closed = !has_records_on_disk(plan) && plan.saving != SaveMemory::windows;
    Plan ample = plan;
    if (!closed) ample.budget_bytes[static_cast<std::size_t>(Tier::device)] = needed + left;
    Compiled whole = compiled(ample);
    const bool fits = whole.fit.fits();
    if (fits && closed) return whole;
    std::vector<std::int64_t> sizes{needed + left / 2, needed};
    const std::int64_t taken = whole.programs.arena_bytes(Tier::device);
    if (fits && taken + compile::host_arena_bytes(whole.programs) <= plan.host_bytes)
      sizes.insert(sizes.begin(), taken);
    for (const std::int64_t bytes : sizes)
      if (Compiled found = with_device_bytes(plan, bytes); found.fit.fits()) return found;
    return least;
  }

  /// Gives the device `bytes`, or the least that its schedules need.
  [[nodiscard]] Compiled with_device_bytes(const Plan& plan, std::int64_t bytes) const {
    Plan divided = plan;
    std::int64_t& budget = divided.budget_bytes[static_cast<std::size_t>(Tier::device)];
    for (;;) {
      budget = bytes;
      divided.host_bytes = plan.host_bytes - bytes;
      Compiled found = close(divided);
      const std::optional<runtime::Shortage>& shortage = found.fit.shortage;
      if (!shortage || shortage->tier != Tier::device || shortage->floor_bytes > plan.host_bytes)
        return found;
      bytes = shortage->floor_bytes;
    }
  }

  [[nodiscard]] Compiled close(Plan plan) const {
    if (plan.saving == SaveMemory::windows) {
      std::optional<std::int64_t> pinned_bytes = with_windows(plan);
      if (!pinned_bytes) return compiled(plan);
      std::int64_t& budget = plan.budget_bytes[static_cast<std::size_t>(Tier::pinned)];
      budget = std::min(budget, *pinned_bytes);
    }
    return with_fewer_records(plan,
                              [&](const Plan& resident) { return with_records_ahead(resident); });
  }

  /// Returns the pinned bytes to allow, since schedules take as many windows as they may: those
  /// without a snapshot, and the snapshot's. Reading ahead needs no more memory than these windows.
  [[nodiscard]] std::optional<std::int64_t> with_windows(Plan plan) const {
    plan.saving = SaveMemory::writing;
    const Compiled still =
        with_fewer_records(plan, [&](const Plan& resident) { return compiled(resident); });
    if (!still.fit.fits()) return {};
    std::int64_t window = 0;
    for (const step::SnapshotPiece& piece :
         step::list_snapshot(units_, still.programs.settings, step::SnapshotCopies::windows))
      window = std::max(window, runtime::room_of(piece.end - piece.begin, Tier::pinned));
    return still.programs.arena_bytes(Tier::pinned) + kSnapshotWindows * window;
  }

  /// Calls `attempt` for Plans with fewer and fewer records in host memory until one fits: only a
  /// schedule tells how much of it transfers need.
  template <typename Attempt>
  [[nodiscard]] Compiled with_fewer_records(const Plan& plan, const Attempt& attempt) const {
    if (!has_records_on_disk(plan) || plan.host_bytes == runtime::kUnlimited) return attempt(plan);
    for (const double share : {1.0, 0.5, 0.25})
      if (Compiled found = attempt(with_resident_records(plan, share)); found.fit.fits())
        return found;
    return attempt(plan);
  }

  /// Keeps records in `share` of the host memory that gradients, parameters and windows of the disk
  /// leave free.
  [[nodiscard]] Plan with_resident_records(const Plan& plan, double share) const {
    step::StepSettings settings = settings_of(plan);
    runtime::PersistentLayout others;
    step::declare_state(others, units_, settings);
    const std::int64_t free_bytes =
        plan.host_bytes - others.bytes(Tier::pinned) - window_bytes(settings, units_);
    keep_records_in_host_memory(settings, units_,
                                std::llround(share * static_cast<double>(free_bytes)));
    return settings.plan;
  }

  /// Reads records ahead into windows of transfers, which are idle during the backward pass, so
  /// that the arena does not grow. Takes as many as the windows hold, unless the step is faster
  /// with fewer: those leave windows to the other records, which otherwise are read, updated and
  /// written in turn. A number of records is tried only if it may pay: the gain is at most the time
  /// to read them, and the time by which the plain schedule exceeds the busiest queue.
  [[nodiscard]] Compiled with_records_ahead(const Plan& plan) const {
    Compiled plain = compiled(plan);
    if (!plain.fit.fits() || !has_records_on_disk(plan) ||
        plan.updates != runtime::Updates::next_step)
      return plain;
    const std::int64_t arena = plain.programs.arena_bytes(Tier::pinned);
    const std::int64_t windows = arena - plain.programs.persistent.bytes(Tier::pinned);
    const std::int64_t plain_ns = plain.programs.scheduled_ns();
    const std::int64_t least_ns = busiest_ns(plain, search_.machine);
    std::optional<Compiled> best;
    const auto is_faster = [&](std::int64_t ns, const Compiled& than) {
      return static_cast<double>(ns) * kAsFast < static_cast<double>(than.programs.scheduled_ns());
    };
    const auto consider = [&](Compiled found) {
      if (!found.fit.fits()) return;  // beside the windows there is too little for the rest
      if (!best || is_faster(found.programs.scheduled_ns(), *best)) best = std::move(found);
    };
    std::size_t records = 0;
    for (const std::int64_t quarters : {4, 3, 2, 1}) {
      Plan ahead = plan;
      ahead.read_ahead_bytes = windows / 4 * quarters;
      ahead.budget_bytes[static_cast<std::size_t>(Tier::pinned)] = arena;
      const std::vector<offload::ReadAhead> read =
          compile::records_read_ahead(settings_of(ahead), units_, ahead.read_ahead_bytes);
      if (read.empty() || read.size() == std::exchange(records, read.size())) continue;
      const std::int64_t gained_ns = std::min(plain_ns - least_ns, reading_ns(read));
      if (!is_faster(plain_ns - gained_ns, best ? *best : plain)) break;
      consider(compiled(ahead));
    }
    consider(std::move(plain));
    return std::move(*best);
  }

  /// All ranks get the same answer.
  [[nodiscard]] static bool may_move_gradients(const Plan& plan) {
    return plan.host_bytes != runtime::kUnlimited && with_gradients_on_disk(plan);
  }

  [[nodiscard]] std::int64_t reading_ns(const std::vector<offload::ReadAhead>& records) const {
    std::int64_t ns = 0;
    for (const offload::ReadAhead& record : records)
      ns += machine::foreseen_ns(search_.machine, {.resource = machine::Resource::disk_read,
                                                   .moved_bytes = record.type.span_bytes()});
    return ns;
  }

  const Search& search_;
  comm::MeshSeat widest_;
  std::vector<runtime::ParameterUnit> units_;
};

}  // namespace

Compiled find_plan(const Search& search) { return Searching(search).run(); }

}  // namespace strata::plan
