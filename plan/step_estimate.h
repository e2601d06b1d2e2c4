// Estimates memory and time of choices without scheduling them, so that only the best are compiled
// as a whole.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/choices.h"
#include "plan/find_plan.h"
#include "plan/layer_samples.h"
#include "plan/memory_needs.h"
#include "step/check_plan.h"

namespace strata::plan {

/// Memory that choices need, and time that they take. As an estimate both may be wrong; as a bound
/// no schedule of these choices needs less or is faster.
struct StepEstimate {
  MemoryNeeds needs;   ///< of the rank with the largest shards
  double seconds = 0;  ///< of a step: what its busiest resource does, nothing waited for
};

/// Memory and time of a step come apart in parts that do not depend on one another: state, by
/// stage and homes; transient values of a micro-batch, affine in its size and nearly linear in the
/// share that is recomputed; arithmetic, alike; transfers, by the bytes of state. A few Programs
/// that are compiled without a schedule give all of them: of the model with a few layers, if its
/// layers are alike (LayerSamples).
class StepEstimates {
 public:
  /// `search.plan` is the frame. Of its limits, that of host memory alone counts: it decides which
  /// optimizer records stay there although their home is the disk. Borrows `search`. `few_layers`:
  /// false if only the whole model may be compiled.
  StepEstimates(const Search& search, const Choices& asked, bool few_layers = true);

  /// Puts the estimate together. Compiles nothing but the Programs that it interpolates between.
  [[nodiscard]] StepEstimate guess(const Choices& choices);
  /// Compiles the choices without a schedule: a bound, up to what few layers do not tell. Nullopt
  /// if they exclude one another.
  [[nodiscard]] std::optional<StepEstimate> bound(const Choices& choices);
  /// Compiles the choices with a schedule in the least memory of the device that allows one, of the
  /// model with a few layers; nullopt if only the whole model may be compiled.
  [[nodiscard]] std::optional<StepEstimate> least_scheduled(const Choices& choices);
  /// Returns the Plan with gradients on the disk if a run would move them there: host memory is too
  /// little for its state.
  [[nodiscard]] runtime::Plan with_room_in_host_memory(runtime::Plan plan) const;
  [[nodiscard]] const std::vector<runtime::ParameterUnit>& units() const { return units_; }
  /// The number of instructions of all Programs that were compiled.
  [[nodiscard]] std::int64_t work() const { return work_; }
  /// Says why choices exclude one another, whatever the memory; empty if they do not.
  [[nodiscard]] std::vector<step::PlanProblem> problems(const Choices& choices) const;

 private:
  /// Arithmetic and memory of one micro-batch without any limit.
  struct MicroBatch {
    double transient_bytes = 0;
    double leaving_bytes = 0;  ///< saved values that leave the device, one direction
    std::array<double, runtime::kPasses> arithmetic{};  ///< seconds by pass
  };
  /// Bytes that a pass moves in a step, all micro-steps together.
  struct Moved {
    double up = 0, down = 0, reads = 0, writes = 0;
    [[nodiscard]] double total() const { return up + down + reads + writes; }
    Moved& operator+=(const Moved& more);
  };
  /// State by home, bytes.
  struct State {
    std::array<std::int64_t, runtime::kTiers> tiers{};
    std::int64_t optimizer_away = 0, optimizer_on_disk = 0;
    std::int64_t window_bytes = 0;  ///< of host memory, for records that come from the disk
    std::int64_t sums_away = 0, sums_on_disk = 0;  ///< of gradients
    std::int64_t parameters_away = 0, parameters_on_disk = 0;
    /// What the host updates of what lives on the device: parameters, and the sums for that.
    double parameters_for_host = 0, sums_for_host = 0;
    double updated_part = 1;         ///< of the elements, that a rank's device updates
    double first_part_by_host = 0;   ///< of the elements that the host updates, the first unit's
    double peer_bytes = 0;           ///< sent in a step, whatever its micro-steps
    double peer_bytes_of_round = 0;  ///< sent in each micro-step, or once if layers come first
    std::int64_t largest_unit_away = 0;  ///< parameters of one unit that are not on the device
    std::int64_t largest_sum_away = 0;   ///< likewise of gradients
    bool moves_gradients = false;  ///< to the disk, since host memory is too little for its state
  };
  /// A share of recomputation with which equal layers recompute the same.
  struct Knot {
    double part = 0;              ///< in the whole model
    std::vector<double> of_each;  ///< in each sample
  };
  using StateKey = std::tuple<int, Home, double, Home, bool, bool>;
  using MicroBatchKey = std::tuple<std::int64_t, std::size_t, Home>;

  [[nodiscard]] runtime::Plan free_plan(const Choices& choices,
                                        const std::vector<runtime::ParameterUnit>& units) const;
  [[nodiscard]] bool moves_gradients(const Choices& choices);
  [[nodiscard]] compile::Compiled compile_unscheduled(const Choices& choices,
                                                      const LayerSamples::Sample& sample);
  [[nodiscard]] compile::Compiled compile_tightly(const Choices& choices,
                                                  const LayerSamples::Sample& sample);
  /// Puts together what `make` says of the samples: Programs of choices that exclude nothing.
  using Make = std::function<compile::Compiled(const Choices&, const LayerSamples::Sample&)>;
  [[nodiscard]] StepEstimate of_samples(const Choices& choices, const Make& make);
  [[nodiscard]] runtime::PersistentLayout declared(const runtime::Plan& plan,
                                                   const LayerSamples::Sample& sample) const;
  const State& state_of(const Choices& choices);
  /// Returns the bytes of optimizer records that a run keeps in host memory although their home is
  /// the disk, beside `taken` bytes there.
  [[nodiscard]] std::int64_t resident_bytes(const State& state, std::int64_t taken) const;
  const std::vector<Knot>& knots(std::int64_t size);
  std::pair<std::size_t, double> place_of(std::int64_t size, double part);
  const MicroBatch& probe(std::int64_t size, std::size_t knot, Home activations);
  MicroBatch measure(const Choices& choices, const LayerSamples::Sample& sample);
  [[nodiscard]] static MicroBatch mix(const MicroBatch& a, const MicroBatch& b, double t);
  /// Values for `samples` in place of a micro-batch, interpolated between probes.
  MicroBatch micro_batch_of(const Choices& choices, std::int64_t samples);
  void add_collectives(const runtime::Plan& plan, State& state) const;
  void add_updates(const runtime::Plan& plan, State& state) const;
  [[nodiscard]] double step_seconds(const Choices& choices, const State& state,
                                    const MicroBatch& micro_batch) const;
  /// Seconds of a pass: of the busiest of its arithmetic, link and drive.
  [[nodiscard]] double pass_seconds(const Moved& moved, double arithmetic) const;
  [[nodiscard]] double seconds_of(machine::Resource resource, double bytes) const;

  const Search& search_;
  const Choices asked_;
  comm::MeshSeat widest_;
  LayerSamples samples_;
  std::vector<runtime::ParameterUnit> units_;
  std::map<StateKey, State> states_;
  std::map<std::int64_t, std::vector<Knot>> knots_;
  std::map<MicroBatchKey, MicroBatch> probes_;
  std::vector<std::pair<Choices, StepEstimate>> bounds_;
  std::atomic<std::int64_t> work_ = 0;
};

/// Sets the share of what layers can recompute, 0 to 1.
void set_again_part(Choices& choices, double part);
/// Returns that share; 0 also for norms alone, which free little.
double again_part_of(const Choices& choices);

}  // namespace strata::plan
