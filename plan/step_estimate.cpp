#include "plan/step_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/gradient_homes.h"
#include "plan/host_state.h"
#include "plan/layers.h"
#include "plan/resident_records.h"
#include "plan/unscheduled.h"
#include "plan/widest_seat.h"
#include "runtime/passes/autodiff.h"
#include "runtime/passes/saved_values.h"
#include "runtime/simulator/foreseen_times.h"
#include "runtime/simulator/host_resources.h"
#include "zero/micro_step.h"

namespace strata::plan {
namespace {

using machine::Resource;
using runtime::Role;
using runtime::Tier;

double between(double a, double b, double t) { return a + (b - a) * t; }

/// Seconds that a step keeps something busy.
struct Busy {
  std::array<double, runtime::kHostResources> of_host{};
  std::array<double, machine::kAllResources.size()> alone{};
  std::array<double, runtime::kPasses> arithmetic{};  ///< by pass, of one micro-step

  /// Returns those of the busiest queue, drive or resource of the host.
  [[nodiscard]] double longest() const {
    return std::max(*std::ranges::max_element(of_host), *std::ranges::max_element(alone));
  }
};

Busy busy_of(const compile::StepPrograms& programs, const machine::Machine& machine) {
  const runtime::ForeseenTimes times(machine);
  Busy busy;
  for (const auto& [key, program] : programs.programs) {
    if (!key.is_train()) continue;
    const int runs = zero::runs_per_step(programs.settings.plan, key.micro_step);
    for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
      const runtime::Instruction& in = program.instructions[static_cast<std::size_t>(i)];
      const runtime::InstructionWork work = times.work_of(program, i);
      const double seconds = 1e-9 * runs * static_cast<double>(work.alone_ns);
      // A drive reads and writes in turn.
      const Resource resource =
          in.demand.resource == Resource::disk_write ? Resource::disk_read : in.demand.resource;
      busy.alone[static_cast<std::size_t>(resource)] += seconds;
      for (const runtime::ResourceShare& share : work.shares)
        busy.of_host[static_cast<std::size_t>(share.resource)] += share.share * seconds;
      if (resource == Resource::device || resource == Resource::host)
        busy.arithmetic[static_cast<std::size_t>(in.pass)] += seconds;
    }
  }
  return busy;
}

/// Part of a bound: all but state, which is added up exactly.
struct BesideState {
  std::array<double, runtime::kTiers> bytes{};
  Busy busy;
};

BesideState mix_beside_state(const BesideState& a, const BesideState& b, double t) {
  BesideState mixed;
  const auto mix_all = [t](const auto& from, const auto& to, auto& into) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = between(from[i], to[i], t);
  };
  mix_all(a.bytes, b.bytes, mixed.bytes);
  mix_all(a.busy.of_host, b.busy.of_host, mixed.busy.of_host);
  mix_all(a.busy.alone, b.busy.alone, mixed.busy.alone);
  return mixed;
}

std::int64_t instructions_of(const compile::StepPrograms& programs) {
  std::int64_t all = 0;
  for (const auto& [key, program] : programs.programs) all += std::ssize(program.instructions);
  return all;
}

}  // namespace

void set_again_part(Choices& choices, double part) {
  choices.again = part > 0 ? Again::everything : Again::nothing;
  choices.again_part = part > 0 ? part : 1;
}

double again_part_of(const Choices& choices) {
  return choices.again == Again::everything ? choices.again_part : 0;
}

/// A model with a few layers cannot obey what names layers, or divides them into runs.
static bool layers_stay_alike(const Choices& asked) {
  return asked.actions.empty() && asked.layer_runs == 0 && asked.parameter_host_elements == 0;
}

StepEstimates::StepEstimates(const Search& search, const Choices& asked, bool few_layers)
    : search_(search),
      asked_(asked),
      widest_(widest_seat(search.where)),
      samples_(search.model, search.plan.shape, few_layers && layers_stay_alike(asked)),
      units_(search.model.build(search.plan.shape, compile::ModelUse::train).graph.units) {}

runtime::Plan StepEstimates::free_plan(const Choices& choices,
                                       const std::vector<runtime::ParameterUnit>& units) const {
  runtime::Plan plan = unscheduled(search_.plan);
  plan.evaluates = false;
  plan.shorter_sequences.clear();
  plan.saving = search_.savings.back();
  plan.budget_bytes = runtime::kUnlimitedBytes;
  plan.host_bytes = runtime::kUnlimited;
  return with_choices(std::move(plan), choices, units);
}

std::vector<step::PlanProblem> StepEstimates::problems(const Choices& choices) const {
  const auto rules = kernels::StepRules::from(search_.model.control);
  return step::find_problems(free_plan(choices, units_), units_, &rules);
}

runtime::Plan StepEstimates::with_room_in_host_memory(runtime::Plan plan) const {
  if (search_.machine.host_is_device()) return plan;
  std::optional<runtime::Plan> moved = with_gradients_on_disk(plan);
  if (!moved) return plan;
  step::StepSettings settings = compile::settings_of(search_.model, plan, widest_);
  settings.plan.host_bytes = search_.plan.host_bytes;
  return state_exceeds_host_memory(units_, settings) ? std::move(*moved) : plan;
}

bool StepEstimates::moves_gradients(const Choices& choices) {
  if (choices.optimizer != Home::disk && choices.parameters != Home::disk) return false;
  return state_of(choices).moves_gradients;
}

compile::Compiled StepEstimates::compile_unscheduled(const Choices& choices,
                                                     const LayerSamples::Sample& sample) {
  runtime::Plan plan = with_choices(free_plan(choices, sample.units), choices, sample.model.build);
  if (moves_gradients(choices)) plan = with_gradients_on_disk(plan).value_or(plan);
  compile::Compiled made = compile::compile(sample.model, plan, search_.machine, widest_);
  work_ += instructions_of(made.programs);
  return made;
}

runtime::PersistentLayout StepEstimates::declared(const runtime::Plan& plan,
                                                  const LayerSamples::Sample& sample) const {
  runtime::PersistentLayout layout;
  step::declare_state(layout, sample.units, compile::settings_of(sample.model, plan, widest_));
  return layout;
}

/// If no schedule is found in a few tries, what is needed without one is returned.
compile::Compiled StepEstimates::compile_tightly(const Choices& choices,
                                                 const LayerSamples::Sample& sample) {
  compile::Compiled unscheduled = compile_unscheduled(choices, sample);
  runtime::Plan plan = unscheduled.programs.settings.plan;
  plan.scheduled = true;
  std::int64_t& budget = plan.budget_bytes[static_cast<std::size_t>(Tier::device)];
  // Half the arena is asked for, and a refusal names what suffices: without a schedule the arena
  // may have holes, all of which a schedule would take.
  budget = unscheduled.programs.arena_bytes(Tier::device) / 2;
  constexpr int kTries = 8;  // schedules of several Programs raise it one after another
  for (int tries = 0; tries < kTries; ++tries) {
    compile::Compiled made =
        compile::compile(sample.model, plan, search_.machine, widest_, compile::Effort::rough);
    work_ += made.work;
    if (made.fit.fits()) return made;
    const std::optional<runtime::Shortage>& shortage = made.fit.shortage;
    const bool told = shortage && shortage->tier == Tier::device;
    budget = std::max(budget + budget / 100, told ? shortage->floor_bytes : 0);
  }
  return unscheduled;
}

std::optional<StepEstimate> StepEstimates::bound(const Choices& choices) {
  if (!problems(choices).empty()) return {};
  for (const auto& [known, estimate] : bounds_)
    if (known == choices) return estimate;
  const StepEstimate found = of_samples(
      choices, [&](const Choices& some, const auto& s) { return compile_unscheduled(some, s); });
  bounds_.emplace_back(choices, found);
  return found;
}

std::optional<StepEstimate> StepEstimates::least_scheduled(const Choices& choices) {
  if (samples_.samples().size() == 1 || !problems(choices).empty()) return {};
  return of_samples(choices,
                    [&](const Choices& some, const auto& s) { return compile_tightly(some, s); });
}

StepEstimate StepEstimates::of_samples(const Choices& choices, const Make& make) {
  const State& state = state_of(choices);  // what is remembered is known before threads ask for it
  const auto measured = [&](const Choices& some, const LayerSamples::Sample& sample) {
    const compile::Compiled made = make(some, sample);
    const runtime::PersistentLayout layout = declared(made.programs.settings.plan, sample);
    BesideState beside{.busy = busy_of(made.programs, search_.machine)};
    for (std::size_t t = 0; t < beside.bytes.size(); ++t) {
      const auto tier = static_cast<Tier>(t);
      const std::int64_t bytes =
          tier == Tier::disk ? made.programs.disk_bytes() : made.programs.arena_bytes(tier);
      beside.bytes[t] = static_cast<double>(bytes - layout.bytes(tier));
    }
    return beside;
  };
  const auto at_knot = [&](const Knot& knot) {
    return samples_.extrapolated(
        [&](const LayerSamples::Sample& sample) {
          Choices some = choices;
          set_again_part(some, knot.of_each[sample.index]);
          return measured(some, sample);
        },
        mix_beside_state);
  };
  const auto of_choices = [&] {
    // The whole model has every share; norms alone are no share.
    if (samples_.samples().size() == 1 || choices.again != Again::everything)
      return samples_.extrapolated([&](const auto& sample) { return measured(choices, sample); },
                                   mix_beside_state);
    const auto [first, beyond] = place_of(choices.micro_batch, again_part_of(choices));
    const Knot* between = &knots(choices.micro_batch)[first];
    const std::vector<BesideState> around =
        all_at_once(beyond == 0 ? 1 : 2, [&](std::size_t i) { return at_knot(between[i]); });
    return beyond == 0 ? around.front() : mix_beside_state(around.front(), around.back(), beyond);
  };
  const BesideState beside = of_choices();
  const auto bytes = [&](Tier tier) {
    const auto t = static_cast<std::size_t>(tier);
    return state.tiers[t] + std::llround(beside.bytes[t]);
  };
  const std::int64_t host = bytes(Tier::pinned) + bytes(Tier::pageable);
  const std::int64_t resident = resident_bytes(state, host);
  return StepEstimate{{bytes(Tier::device), host + resident, bytes(Tier::disk) - resident},
                      beside.busy.longest()};
}

/// Adds what a rank sends in collectives: nearly all of a unit's bytes in each of them. Gradients
/// are reduced in each micro-step where they are sharded; parameters are gathered after updates, or
/// for both passes of each micro-step where they are sharded.
void StepEstimates::add_collectives(const runtime::Plan& plan, State& state) const {
  const int ranks = plan.data_ranks();
  for (const runtime::UnitPlan& unit : plan.units) {
    const auto size = static_cast<double>(unit.elements);
    const double sent = size * static_cast<double>(size_of(plan.gradient.reduced)) *
                        static_cast<double>(ranks - 1) / ranks;
    (unit.shard_gradient ? state.peer_bytes_of_round : state.peer_bytes) += sent;
    if (unit.shard_parameter)
      state.peer_bytes_of_round += 2 * sent;
    else
      state.peer_bytes += sent;
  }
}

/// Adds who updates what. The host's threads update the elements whose optimizer state is not on
/// the device: gradients come to them, and parameters go to where they live.
void StepEstimates::add_updates(const runtime::Plan& plan, State& state) const {
  double elements = 0, updated = 0, by_host = 0, first_by_host = 0;
  for (const runtime::UnitPlan& unit : plan.units) {
    const double part = unit.shard_optimizer ? 1.0 / plan.data_ranks() : 1;
    const double mine = static_cast<double>(unit.elements) * part;
    const bool is_away = unit.optimizer_tier != Tier::device;
    const double on_host =
        is_away ? std::max(0.0, mine - static_cast<double>(unit.optimizer_device_elements)) : 0;
    elements += static_cast<double>(unit.elements);
    by_host += on_host;
    if (first_by_host == 0) first_by_host = on_host;
    updated += search_.machine.host_is_device() ? mine : mine - on_host;
    if (unit.parameter_tier == Tier::device)
      state.parameters_for_host += on_host * static_cast<double>(size_of(unit.recipe.dtype));
    if (unit.gradient_tier == Tier::device)
      state.sums_for_host += on_host * static_cast<double>(size_of(plan.gradient.accumulated));
  }
  state.updated_part = elements > 0 ? updated / elements : 1;
  state.first_part_by_host = by_host > 0 ? first_by_host / by_host : 0;
}

const StepEstimates::State& StepEstimates::state_of(const Choices& choices) {
  const StateKey key{choices.sharding.stage,
                     choices.optimizer,
                     choices.optimizer_part,
                     choices.parameters,
                     choices.keeps_sums_away(),
                     choices.micro_steps > 1};  // sums of virtual ranks stay between them
  const auto [at, fresh] = states_.try_emplace(key);
  if (!fresh) return at->second;
  State& state = at->second;
  const runtime::Plan wanted = free_plan(choices, units_);
  const runtime::Plan plan = with_room_in_host_memory(wanted);
  state.moves_gradients = plan.units != wanted.units;
  runtime::PersistentLayout layout;
  const step::StepSettings settings = compile::settings_of(search_.model, plan, widest_);
  step::declare_state(layout, units_, settings);
  state.window_bytes = window_bytes(settings, units_);
  for (std::size_t t = 0; t < state.tiers.size(); ++t)
    state.tiers[t] = layout.bytes(static_cast<Tier>(t));
  add_collectives(plan, state);
  add_updates(plan, state);
  for (const runtime::PersistentValue& value : layout.values()) {
    if (value.tier == Tier::device) continue;
    const std::int64_t bytes = value.type.span_bytes();
    const bool on_disk = value.tier == Tier::disk;
    if (value.role == Role::optimizer) {
      state.optimizer_away += bytes;
      if (on_disk) state.optimizer_on_disk += bytes;
    } else if (value.role == Role::gradient) {
      state.sums_away += bytes;
      if (on_disk) state.sums_on_disk += bytes;
      state.largest_sum_away = std::max(state.largest_sum_away, bytes);
    } else if (value.role == Role::parameter) {
      state.parameters_away += bytes;
      if (on_disk) state.parameters_on_disk += bytes;
      state.largest_unit_away = std::max(state.largest_unit_away, bytes);
    }
  }
  return state;
}

std::int64_t StepEstimates::resident_bytes(const State& state, std::int64_t taken) const {
  const std::int64_t limit = search_.plan.host_bytes;
  if (limit == runtime::kUnlimited || search_.machine.host_is_device()) return 0;
  const std::int64_t free = limit - taken - state.window_bytes;
  return std::max<std::int64_t>(0, std::min(state.optimizer_on_disk, free));
}

/// Returns the shares between which values are interpolated: none, all, and those nearest to the
/// quarters between.
const std::vector<StepEstimates::Knot>& StepEstimates::knots(std::int64_t size) {
  const auto [at, fresh] = knots_.try_emplace(size);
  std::vector<Knot>& found = at->second;
  if (!fresh) return found;
  const std::size_t samples = samples_.samples().size();
  using Freed = std::vector<double>;
  std::vector<Freed> of_each(samples);
  const auto measured = [&](const LayerSamples::Sample& sample) {
    runtime::BatchShape shape = search_.plan.shape;
    shape.batch = size;
    runtime::Graph graph = sample.model.build(shape, compile::ModelUse::train).graph;
    const std::vector<int> layers = layers_of(graph.blocks);
    runtime::differentiate(graph, {search_.plan.gradient.produced});
    std::vector<std::int64_t> freed;
    if (!layers.empty())
      freed = runtime::SavedChoices(graph).freed_by_price(layers.front(), layers.back());
    return of_each[sample.index] = Freed(freed.begin(), freed.end());
  };
  const Freed whole =
      samples_.extrapolated(measured, [](const Freed& a, const Freed& b, double t) -> Freed {
        if (a.size() != b.size()) return {};  // layers are not as alike as they seem
        Freed mixed;
        for (std::size_t i = 0; i < a.size(); ++i) mixed.push_back(between(a[i], b[i], t));
        return mixed;
      });
  found.push_back({0, std::vector<double>(samples, 0)});
  for (const double wanted : {0.25, 0.5, 0.75}) {
    if (whole.empty()) break;
    const auto nearest = std::ranges::min_element(
        whole, {}, [&](double freed) { return std::abs(freed - wanted * whole.back()); });
    const auto i = static_cast<std::size_t>(nearest - whole.begin());
    Knot knot{whole[i] / whole.back(), {}};
    if (i + 1 == whole.size() || knot.part <= found.back().part) continue;
    // Parts are a little less, so that rounding does not make another layer recompute more.
    for (const Freed& freed : of_each) knot.of_each.push_back(freed[i] / freed.back() * (1 - 1e-9));
    found.push_back(std::move(knot));
  }
  found.push_back({1, std::vector<double>(samples, 1)});
  return found;
}

/// Returns the last knot that is not beyond `part`, and how far `part` is on the way to the next.
std::pair<std::size_t, double> StepEstimates::place_of(std::int64_t size, double part) {
  const std::vector<Knot>& known = knots(size);
  std::size_t i = 0;
  while (i + 1 < known.size() && known[i + 1].part <= part) ++i;
  if (known[i].part >= part) return {i, 0};
  return {i, (part - known[i].part) / (known[i + 1].part - known[i].part)};
}

const StepEstimates::MicroBatch& StepEstimates::probe(std::int64_t size, std::size_t knot,
                                                      Home activations) {
  const auto [at, fresh] = probes_.try_emplace({size, knot, activations});
  if (!fresh) return at->second;
  Choices choices = asked_;
  choices.micro_batch = size;
  choices.micro_steps = 1;
  choices.layer_major = false;
  choices.sharding.stage = 0;
  choices.optimizer = choices.parameters = Home::device;
  choices.activations = activations;
  if (!problems(choices).empty()) return at->second;
  const std::vector<double> parts = knots(size)[knot].of_each;
  const auto measured = [&](const LayerSamples::Sample& sample) {
    Choices of_sample = choices;
    set_again_part(of_sample, parts[sample.index]);
    return measure(of_sample, sample);
  };
  at->second = samples_.extrapolated(measured, mix);
  return at->second;
}

StepEstimates::MicroBatch StepEstimates::measure(const Choices& choices,
                                                 const LayerSamples::Sample& sample) {
  const compile::Compiled made = compile_unscheduled(choices, sample);
  const Busy busy = busy_of(made.programs, search_.machine);
  MicroBatch found;
  found.transient_bytes = static_cast<double>(made.programs.arena_bytes(Tier::device) -
                                              made.programs.persistent.bytes(Tier::device));
  for (const runtime::Instruction& in :
       made.programs.find(compile::ProgramKind::train)->instructions)
    if (in.demand.resource == Resource::download && in.pass != runtime::Pass::update)
      found.leaving_bytes += static_cast<double>(in.demand.moved_bytes);
  found.arithmetic = busy.arithmetic;
  return found;
}

StepEstimates::MicroBatch StepEstimates::mix(const MicroBatch& a, const MicroBatch& b, double t) {
  MicroBatch mixed{between(a.transient_bytes, b.transient_bytes, t),
                   between(a.leaving_bytes, b.leaving_bytes, t)};
  for (std::size_t i = 0; i < mixed.arithmetic.size(); ++i)
    mixed.arithmetic[i] = between(a.arithmetic[i], b.arithmetic[i], t);
  return mixed;
}

StepEstimates::MicroBatch StepEstimates::micro_batch_of(const Choices& choices,
                                                        std::int64_t samples) {
  const auto of_size = [&](std::int64_t size) {
    const auto [knot, beyond] = place_of(size, again_part_of(choices));
    const MicroBatch& less = probe(size, knot, choices.activations);
    return beyond == 0 ? less : mix(less, probe(size, knot + 1, choices.activations), beyond);
  };
  const std::int64_t most = asked_.micro_batch * asked_.micro_steps;
  const std::int64_t large = std::max<std::int64_t>(std::min<std::int64_t>(most, 4), 1);
  if (large == 1) return of_size(1);
  return mix(of_size(1), of_size(large),
             static_cast<double>(samples - 1) / static_cast<double>(large - 1));
}

StepEstimate StepEstimates::guess(const Choices& choices) {
  State state = state_of(choices);
  const MicroBatch micro_batch = micro_batch_of(choices, choices.micro_batch);
  // Layer by layer, what all micro-batches save waits at the same time.
  const std::int64_t waiting = choices.layer_major ? choices.micro_steps : 1;
  const std::int64_t alive = choices.micro_batch * waiting;
  StepEstimate estimate;
  MemoryNeeds& needs = estimate.needs;
  needs.device = state.tiers[static_cast<std::size_t>(Tier::device)] +
                 std::llround(micro_batch_of(choices, alive).transient_bytes) +
                 2 * state.largest_unit_away;
  if (choices.adds_sums_up()) needs.device += 2 * state.largest_sum_away;
  needs.host = state.tiers[static_cast<std::size_t>(Tier::pinned)] +
               state.tiers[static_cast<std::size_t>(Tier::pageable)];
  if (choices.activations == Home::host)
    needs.host += std::llround(micro_batch.leaving_bytes * static_cast<double>(waiting));
  needs.disk = state.tiers[static_cast<std::size_t>(Tier::disk)];
  const std::int64_t resident = resident_bytes(state, needs.host);
  needs.host += resident;
  needs.disk -= resident;
  state.optimizer_on_disk -= resident;
  estimate.seconds = step_seconds(choices, state, micro_batch);
  return estimate;
}

}  // namespace strata::plan
