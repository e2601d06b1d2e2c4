// The place of a micro-step in its step, and the order of the micro-steps.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "runtime/graph/plan.h"

namespace strata::zero {

/// What one micro-step's Program does for step and gradient; equal kinds share their Program. A
/// rank that stands for several virtual ranks (docs/adr/0012) computes one leaf of the tree for
/// each, and joins it with the partial sums that wait, as a binary counter carries. The accumulator
/// adds up the micro-steps of a leaf or, where gradients are sharded, each round's sum of all
/// leaves; what waits as a partial sum is neither added there nor read from there.
struct MicroStepKind {
  bool begins_step = true;
  bool ends_step = true;
  bool opens_sum = true;   ///< the accumulator holds nothing yet
  bool closes_sum = true;  ///< after it the accumulator's sum is whole
  int joins = 0;           ///< waiting partial sums that its leaf joins
  bool completes = true;   ///< its leaf is the rank's last

  /// Kinds for ranks of one virtual rank each.
  static const MicroStepKind only, first, middle, last;

  auto operator<=>(const MicroStepKind&) const = default;
};
inline constexpr MicroStepKind MicroStepKind::only{};
inline constexpr MicroStepKind MicroStepKind::first{true, false, true, false};
inline constexpr MicroStepKind MicroStepKind::middle{false, false, false, false};
inline constexpr MicroStepKind MicroStepKind::last{false, true, false, true};

/// "only", "first", "middle", "last"; then "_opens", and "_leafN" or, for the last leaf, "_rootN"
/// with N the partial sums that it joins. Different ones have different names.
std::string name_of(const MicroStepKind& kind);
constexpr bool begins_step(const MicroStepKind& p) { return p.begins_step; }
constexpr bool ends_step(const MicroStepKind& p) { return p.ends_step; }

/// One of a step's micro-steps on this rank.
struct MicroStep {
  MicroStepKind kind;
  /// Which micro-batch of the rank: sample j of it is (batch x world + rank) x rows + j of the
  /// step.
  int batch = 0;
};

/// Lists them in order. Where gradients are reduced in each micro-step (they are sharded) all
/// leaves of a round of accumulation follow one another; else all micro-steps of a leaf do. Layer
/// by layer there is only one.
std::vector<MicroStep> micro_steps(const runtime::Plan& plan);

/// How often a step runs the Program of `kind`.
int runs_per_step(const runtime::Plan& plan, const MicroStepKind& kind);

}  // namespace strata::zero
