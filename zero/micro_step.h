// The role of a micro-step in its step, and the order of the micro-steps.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "runtime/graph/plan.h"

namespace strata::zero {

/// The role of one micro-step's Program for step and gradient; equal kinds share their Program. A
/// rank that stands for several virtual ranks (docs/adr/0012) computes one leaf of the tree for
/// each, and joins it with the waiting partial sums, like the carry of a binary counter. The
/// accumulator adds up the micro-steps of a leaf or, if gradients are sharded, each round's sum of
/// all leaves; waiting partial sums are no part of that.
struct MicroStepKind {
  bool begins_step = true;
  bool ends_step = true;
  bool opens_sum = true;   ///< the accumulator is empty before
  bool closes_sum = true;  ///< the accumulator's sum is complete afterwards
  int joins = 0;           ///< number of waiting partial sums that its leaf joins
  bool completes = true;   ///< its leaf is the rank's last

  /// Kinds for ranks that stand for one virtual rank each.
  static const MicroStepKind only, first, middle, last;

  auto operator<=>(const MicroStepKind&) const = default;
};
inline constexpr MicroStepKind MicroStepKind::only{};
inline constexpr MicroStepKind MicroStepKind::first{true, false, true, false};
inline constexpr MicroStepKind MicroStepKind::middle{false, false, false, false};
inline constexpr MicroStepKind MicroStepKind::last{false, true, false, true};

/// Returns "only", "first", "middle" or "last"; then "_opens"; then "_leafN" or, for the last leaf,
/// "_rootN", with N the number of partial sums that it joins. Different kinds have different names.
std::string name_of(const MicroStepKind& kind);

/// One of a step's micro-steps on this rank.
struct MicroStep {
  MicroStepKind kind;
  /// Index among the micro-batches of the rank: its sample j is sample (batch x data ranks + rank)
  /// x rows + j of the step.
  int batch = 0;
};

/// Lists the micro-steps of a step in order. If gradients are reduced in each micro-step (they are
/// sharded), all leaves of a round of accumulation follow one another; else all micro-steps of a
/// leaf do. With MicroStepOrder::by_layer there is only one.
std::vector<MicroStep> micro_steps(const runtime::Plan& plan);

/// Returns how often a step runs the Program of `kind`.
int runs_per_step(const runtime::Plan& plan, const MicroStepKind& kind);

}  // namespace strata::zero
