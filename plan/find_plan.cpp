#include "plan/find_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "compile/read_ahead.h"
#include "core/check.h"
#include "plan/compile_for_seat.h"
#include "plan/disk_time.h"
#include "plan/foresee.h"
#include "plan/gradient_homes.h"
#include "plan/host_state.h"
#include "plan/resident_records.h"
#include "plan/unscheduled.h"
#include "plan/widest_seat.h"
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
/// A Plan is not compiled if others let it be foreseen to exceed its memory by more than this
/// factor.
constexpr double kSurelyTooMuch = 1.03;
/// Shares of the free host memory that are tried for records, until one fits.
constexpr std::array kShares{1.0, 0.5, 0.25};
/// One window is filled, one is on its way to the disk, and two keep both from waiting.
constexpr int kSnapshotWindows = 4;

bool has_records_on_disk(const Plan& plan) {
  return std::ranges::any_of(plan.units, [](const runtime::UnitPlan& unit) {
    return unit.recipe.trainable && unit.optimizer_tier == Tier::disk;
  });
}

bool lacks_pinned_memory(const compile::Fit& fit) {
  return fit.shortage && fit.shortage->tier == Tier::pinned;
}

bool lacks_host_memory(const compile::Fit& fit) {
  return fit.kept_too_much || !fit.host.fits() || lacks_pinned_memory(fit);
}

enum class Among : std::uint8_t { all, beside_disk };

/// Returns a time that no order of the same instructions can beat, even if reads for the next step
/// move from one micro-step to another: what the busiest queue does in a step. Reads and writes of
/// a disk count as one queue, because they take turns.
std::int64_t busiest_ns(const compile::StepPrograms& programs, const machine::Machine& machine,
                        Among queues) {
  std::array<std::int64_t, runtime::kQueues> busy{};
  std::int64_t disk = 0;
  for (const auto& [key, program] : programs.programs) {
    if (!key.is_train()) continue;
    const int runs = zero::runs_per_step(programs.settings.plan, key.micro_step);
    for (const runtime::Instruction& in : program.instructions) {
      const bool is_disk =
          in.queue == runtime::Queue::disk_read || in.queue == runtime::Queue::disk_write;
      (is_disk ? disk : busy[static_cast<std::size_t>(in.queue)]) +=
          runs * machine::foreseen_ns(machine, in.demand);
    }
  }
  const std::int64_t others = *std::ranges::max_element(busy);
  return queues == Among::all ? std::max(disk, others) : others;
}

/// True if a Plan has Programs besides those of a step.
bool has_other_programs(const Plan& plan) {
  return plan.evaluates || !plan.shorter_sequences.empty() || takes_snapshots(plan.saving);
}

/// One way of saving. Only if there are several, its times are foreseen.
struct Way {
  Plan asked;
  double step_seconds = 0;             ///< of a step without saving, at least
  double save_seconds = 0;             ///< of one save
  std::optional<Compiled> found = {};  ///< the Programs of a step; nothing: not tried
  bool refused = false;
};

class Searching {
 public:
  explicit Searching(const Search& search)
      : search_(search),
        widest_(widest_seat(search.where)),
        units_(search.model.build(search.plan.shape, compile::ModelUse::train).graph.units) {}

  /// Moves gradients to the disk only if host memory is too little: a sum that stays in host memory
  /// need be neither written nor read again.
  Compiled run() const {
    const std::optional<Plan> on_disk = with_gradients_on_disk(search_.plan);
    const comm::MeshSeat& seat = is_open(search_.plan) ? widest_ : search_.where;
    const bool refused =
        on_disk &&
        state_exceeds_host_memory(units_, compile::settings_of(search_.model, search_.plan, seat));
    Attempt attempt = first_accepted(refused ? *on_disk : search_.plan);
    if (attempt.lacks_host_memory && on_disk && !refused) attempt = first_accepted(*on_disk);
    attempt.found.work = work_;
    return std::move(attempt.found);
  }

 private:
  /// Makes all Programs, or those of a step, which are enough to compare Plans.
  using Compile = Compiled (*)(const compile::TrainingModel&, const Plan&, const machine::Machine&,
                               const comm::MeshSeat&, compile::Effort);

  struct Attempt {
    Compiled found;
    /// Judged on the rank with the largest shards if something is open, so that all ranks agree.
    bool lacks_host_memory = false;
  };

  /// Tries the ways that may be fastest until one of them is accepted. A way is compiled only if
  /// no other is known to be as fast.
  [[nodiscard]] Attempt first_accepted(const Plan& asked) const {
    const Accepts accepts =
        search_.accepts ? search_.accepts : [](const Compiled& found) { return found.fit.fits(); };
    std::vector<Way> ways = ways_of(asked);
    while (Way* way = most_promising(ways)) {
      const bool is_last = way == &ways.back();
      if (!way->found) {
        way->found = planned(way->asked, compile::compile_step);
        if (way->found->fit.fits())
          compare(ways, *way);
        else
          way->refused = is_last || !accepts(*way->found);
      } else if (is_last) {
        break;
      } else {
        Attempt attempt = completed(*way);
        if (accepts(attempt.found)) return attempt;
        way->refused = true;
      }
    }
    return completed(ways.back());
  }

  [[nodiscard]] std::vector<Way> ways_of(Plan plan) const {
    STRATA_CHECK(!search_.savings.empty(), "no way of saving to try");
    std::vector<Way> ways;
    for (const SaveMemory saving : search_.savings) {
      plan.saving = saving;
      Way& way = ways.emplace_back(Way{.asked = plan});
      if (search_.savings.size() == 1) break;
      const step::StepSettings settings = with_records(plan, 1);
      way.step_seconds = record_seconds(settings, units_, search_.machine);
      way.save_seconds = save_seconds(settings, units_, search_.machine);
    }
    return ways;
  }

  /// Returns the first of the ways that may be as fast as any; null if all are refused.
  [[nodiscard]] Way* most_promising(std::vector<Way>& ways) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Way& way : ways)
      if (!way.refused) least = std::min(least, saving_step_seconds(way));
    const auto first = std::ranges::find_if(ways, [&](const Way& way) {
      return !way.refused && saving_step_seconds(way) <= least * kAsFast;
    });
    return first == ways.end() ? nullptr : &*first;
  }

  /// Returns the seconds of a step with its part of a save, at least.
  [[nodiscard]] double saving_step_seconds(const Way& way) const {
    double saves = 0;  // in a step
    if (search_.save_every_steps > 0) saves = 1 / static_cast<double>(search_.save_every_steps);
    if (search_.save_every_seconds > 0)
      saves = std::max(saves, way.step_seconds / static_cast<double>(search_.save_every_seconds));
    return way.step_seconds + saves * way.save_seconds;
  }

  /// Foresees the step of `tried`, and the least that follows for ways that were not tried: these
  /// compute and send the same, find room for the same share of records, and gain at most the time
  /// in which the disk does less.
  void compare(std::vector<Way>& ways, Way& tried) const {
    if (ways.size() == 1) return;
    const compile::StepPrograms& programs = tried.found->programs;
    tried.step_seconds = foresee(programs, search_.machine).step_seconds;
    tried.save_seconds = save_seconds(programs.settings, units_, search_.machine);
    const double records = record_seconds(programs.settings, units_, search_.machine);
    const double others =
        1e-9 * static_cast<double>(busiest_ns(programs, search_.machine, Among::beside_disk));
    const double share = share_of_records(tried);
    for (Way& way : ways) {
      if (way.found) continue;
      const step::StepSettings settings = with_records(way.asked, share);
      const double gained =
          std::max(0.0, records - record_seconds(settings, units_, search_.machine));
      way.step_seconds = std::max({way.step_seconds, others, tried.step_seconds - gained});
      way.save_seconds = save_seconds(settings, units_, search_.machine);
    }
  }

  /// Fills `share` of the free host memory with records, if any may lie there.
  [[nodiscard]] step::StepSettings with_records(const Plan& plan, double share) const {
    return settings_of(keeps_some_records(plan) ? with_resident_records(plan, share) : plan);
  }

  /// Returns the share of the free host memory that holds records; 1 if it cannot be told.
  [[nodiscard]] double share_of_records(const Way& tried) const {
    const auto found = std::ranges::find_if(kShares, [&](double share) {
      return keeps_some_records(tried.asked) && with_resident_records(tried.asked, share).units ==
                                                    tried.found->programs.settings.plan.units;
    });
    return found == kShares.end() ? 1 : *found;
  }

  /// Adds the Programs that are not a step's, and answers for the rank that asks.
  [[nodiscard]] Attempt completed(Way& way) const {
    Compiled found = std::move(*way.found);
    if (found.fit.fits() && has_other_programs(way.asked))
      found = with_all_programs(way.asked, std::move(found.programs));
    if (!found.fit.fits()) return {std::move(found), lacks_host_memory(found.fit)};
    const Plan& plan = found.programs.settings.plan;
    if (!is_open(way.asked) || widest_ == search_.where) return {std::move(found)};
    Compiled mine = compile_for_seat(search_.model, plan, way.asked, search_.machine, search_.where,
                                     search_.effort);
    work_ += mine.work;
    return {std::move(mine)};
  }

  /// A snapshot by windows takes as many as it may: without a limit, it gets its own beside those
  /// of `step`. If the other Programs do not fit as the step was planned, plans all together.
  [[nodiscard]] Compiled with_all_programs(const Plan& asked, compile::StepPrograms step) const {
    Plan plan = step.settings.plan;
    std::int64_t& budget = plan.budget_bytes[static_cast<std::size_t>(Tier::pinned)];
    if (plan.saving == SaveMemory::windows && plan.host_bytes == runtime::kUnlimited)
      budget = std::min(budget, step.arena_bytes(Tier::pinned) + snapshot_window_bytes(step));
    const comm::MeshSeat& seat = is_open(asked) ? widest_ : search_.where;
    Compiled found =
        plan == step.settings.plan
            ? compile::compile_rest(search_.model, std::move(step), search_.machine, seat,
                                    search_.effort)
            : compile::compile(search_.model, plan, search_.machine, seat, search_.effort);
    work_ += found.work;
    return found.fit.fits() ? std::move(found) : planned(asked, compile::compile);
  }

  /// Returns the bytes of the windows through which snapshots go; 0 if they take none.
  [[nodiscard]] static std::int64_t snapshot_window_bytes(const compile::StepPrograms& programs) {
    if (programs.settings.plan.saving != SaveMemory::windows) return 0;
    std::int64_t window = 0;
    for (const step::SnapshotPiece& piece : programs.snapshot_pieces)
      window = std::max(window, runtime::room_of(piece.end - piece.begin, Tier::pinned));
    return kSnapshotWindows * window;
  }

  [[nodiscard]] step::StepSettings settings_of(const Plan& plan) const {
    return compile::settings_of(search_.model, plan, widest_);
  }
  [[nodiscard]] Compiled make_for(const comm::MeshSeat& seat, const Plan& plan,
                                  Compile make) const {
    Compiled found = make(search_.model, plan, search_.machine, seat, search_.effort);
    work_ += found.work;
    return found;
  }
  /// Compiles for the rank with the largest shards, the last one.
  [[nodiscard]] Compiled compiled(const Plan& plan, Compile make) const {
    return make_for(widest_, plan, make);
  }

  [[nodiscard]] static bool is_open(const Plan& plan) {
    return plan.scheduled && (has_records_on_disk(plan) || plan.saving == SaveMemory::windows ||
                              may_move_gradients(plan) || compile::shares_host_memory(plan));
  }

  /// Plans for the rank with the largest shards. If nothing is open in the Plan, the rank that asks
  /// is compiled, and no other.
  [[nodiscard]] Compiled planned(const Plan& plan, Compile make) const {
    if (!is_open(plan)) return make_for(search_.where, plan, make);
    Compiled plain =
        compile::shares_host_memory(plan) ? divide(plan, make) : with_fewer_records(plan, make);
    return with_records_ahead(std::move(plain), make);
  }

  /// Divides the memory of a host that is the device. Schedules take all memory that makes them
  /// faster and know of no sum over tiers. So the device gets what its schedules take; if that is
  /// too much, its least need and half of what is left; else its least need. The host gets the
  /// rest. The Plan without a schedule says the least needs, and is returned if nothing else fits.
  [[nodiscard]] Compiled divide(const Plan& plan, Compile make) const {
    Compiled least = compiled(unscheduled(plan), make);
    if (!least.fit.fits()) return least;
    const std::int64_t needed = least.programs.arena_bytes(Tier::device);
    const std::int64_t left = plan.host_bytes - compile::host_arena_bytes(least.programs);
    const bool closed = !has_records_on_disk(plan);
    Plan ample = plan;
    if (!closed) ample.budget_bytes[static_cast<std::size_t>(Tier::device)] = needed + left;
    Compiled whole = compiled(ample, make);
    const bool fits = whole.fit.fits();
    if (fits && closed) return whole;
    std::vector<std::int64_t> sizes{needed + left / 2, needed};
    const std::int64_t taken = whole.programs.arena_bytes(Tier::device);
    if (fits && taken + compile::host_arena_bytes(whole.programs) <= plan.host_bytes)
      sizes.insert(sizes.begin(), taken);
    for (const std::int64_t bytes : sizes)
      if (Compiled found = with_device_bytes(plan, bytes, make); found.fit.fits()) return found;
    return least;
  }

  /// Gives the device `bytes`, or the least that its schedules need.
  [[nodiscard]] Compiled with_device_bytes(const Plan& plan, std::int64_t bytes,
                                           Compile make) const {
    Plan divided = plan;
    std::int64_t& budget = divided.budget_bytes[static_cast<std::size_t>(Tier::device)];
    for (;;) {
      budget = bytes;
      divided.host_bytes = plan.host_bytes - bytes;
      Compiled found = with_fewer_records(divided, make);
      const std::optional<runtime::Shortage>& shortage = found.fit.shortage;
      if (!shortage || shortage->tier != Tier::device || shortage->floor_bytes > plan.host_bytes)
        return found;
      bytes = shortage->floor_bytes;
    }
  }

  [[nodiscard]] static bool keeps_some_records(const Plan& plan) {
    return has_records_on_disk(plan) && plan.host_bytes != runtime::kUnlimited;
  }

  /// True if what is kept on the device alone exceeds its budget, however many records stay in host
  /// memory.
  [[nodiscard]] bool state_exceeds_device(const Plan& plan) const {
    runtime::PersistentLayout state;
    step::declare_state(state, units_, settings_of(plan));
    return state.bytes(Tier::device) > plan.budget_bytes[static_cast<std::size_t>(Tier::device)];
  }

  /// Compiles Plans with fewer and fewer records in host memory until one fits: only a schedule
  /// tells how much of it transfers need. What they needed beside more records, they need beside
  /// fewer, too.
  [[nodiscard]] Compiled with_fewer_records(const Plan& plan, Compile make) const {
    if (keeps_some_records(plan) && !state_exceeds_device(plan)) {
      Plan last = plan;
      std::int64_t transfers = 0;
      for (const double share : kShares) {
        const Plan resident = with_resident_records(plan, share);
        if (resident == std::exchange(last, resident)) break;
        const auto needed = static_cast<double>(host_state_bytes(resident) + transfers);
        if (needed > kSurelyTooMuch * static_cast<double>(plan.host_bytes)) continue;
        Compiled found = compiled(resident, make);
        if (found.fit.fits()) return found;
        if (const auto& shortage = found.fit.shortage; lacks_pinned_memory(found.fit))
          transfers =
              shortage->floor_bytes - shortage->kept_bytes[static_cast<std::size_t>(Tier::pinned)];
      }
    }
    return compiled(plan, make);
  }

  [[nodiscard]] std::int64_t host_state_bytes(const Plan& plan) const {
    runtime::PersistentLayout state;
    step::declare_state(state, units_, settings_of(plan));
    return state.bytes(Tier::pinned) + state.bytes(Tier::pageable);
  }

  [[nodiscard]] Plan with_resident_records(const Plan& plan, double share) const {
    return plan::with_resident_records(settings_of(plan), units_, share);
  }

  /// Reads records ahead into windows of transfers, which are idle during the backward pass, so
  /// that the arena does not grow. Takes as many as the windows hold, unless the step is faster
  /// with fewer: those leave windows to the other records, which otherwise are read, updated and
  /// written in turn. A number of records is tried only if it may pay: the gain is at most the time
  /// to read them, and the time by which the plain schedule exceeds the busiest queue.
  [[nodiscard]] Compiled with_records_ahead(Compiled plain, Compile make) const {
    const Plan plan = plain.programs.settings.plan;
    if (!plain.fit.fits() || !plan.scheduled || !has_records_on_disk(plan) ||
        plan.updates != runtime::Updates::next_step)
      return plain;
    const std::int64_t arena = plain.programs.arena_bytes(Tier::pinned);
    const std::int64_t windows = arena - plain.programs.persistent.bytes(Tier::pinned);
    const std::int64_t plain_ns = plain.programs.scheduled_ns();
    const std::int64_t least_ns = busiest_ns(plain.programs, search_.machine, Among::all);
    std::optional<Compiled> best;
    const auto is_faster = [&](std::int64_t ns, const Compiled& than) {
      return static_cast<double>(ns) * kAsFast < static_cast<double>(than.programs.scheduled_ns());
    };
    std::int64_t most_bytes = runtime::kUnlimited;  // of records that leave windows enough memory
    const auto consider = [&](Compiled found) {
      if (!found.fit.fits()) return;  // beside the windows there is too little for the rest
      if (!best || is_faster(found.programs.scheduled_ns(), *best)) best = std::move(found);
    };
    std::size_t records = 0;
    for (const std::int64_t quarters : {4, 3, 2, 1}) {
      Plan ahead = plan;
      ahead.read_ahead_bytes = windows / 4 * quarters;
      ahead.budget_bytes[static_cast<std::size_t>(Tier::pinned)] =
          arena + snapshot_window_bytes(plain.programs);
      const std::vector<offload::ReadAhead> read =
          compile::records_read_ahead(settings_of(ahead), units_, ahead.read_ahead_bytes);
      if (read.empty() || read.size() == std::exchange(records, read.size())) continue;
      const std::int64_t gained_ns = std::min(plain_ns - least_ns, reading_ns(read));
      if (!is_faster(plain_ns - gained_ns, best ? *best : plain)) break;
      if (bytes_of(read) > most_bytes) continue;
      Compiled found = compiled(ahead, make);
      if (lacks_pinned_memory(found.fit))
        most_bytes =
            bytes_of(read) -
            std::llround(static_cast<double>(found.fit.shortage->floor_bytes) / kSurelyTooMuch) +
            found.fit.shortage->budget_bytes;
      consider(std::move(found));
    }
    consider(std::move(plain));
    return std::move(*best);
  }

  /// All ranks get the same answer.
  [[nodiscard]] static bool may_move_gradients(const Plan& plan) {
    return plan.host_bytes != runtime::kUnlimited && with_gradients_on_disk(plan);
  }

  [[nodiscard]] static std::int64_t bytes_of(const std::vector<offload::ReadAhead>& records) {
    std::int64_t bytes = 0;
    for (const offload::ReadAhead& record : records) bytes += record.type.span_bytes();
    return bytes;
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
  mutable std::int64_t work_ = 0;  ///< of all that was compiled
};

}  // namespace

Compiled find_plan(const Search& search) { return Searching(search).run(); }

}  // namespace strata::plan
