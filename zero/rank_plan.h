// Says who owns what: the Plan, and the part of each unit that one rank keeps.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/graph/graph.h"
#include "runtime/graph/plan.h"

namespace strata::zero {

/// The Plan as one rank sees it.
struct RankPlan {
  runtime::Plan plan;
  comm::MeshPoint at;  ///< the rank's point on the Plan's mesh

  [[nodiscard]] int data_rank() const { return at.along(comm::MeshAxis::data); }
};

/// The part of one unit that a rank keeps.
struct OwnedUnit {
  std::int64_t owned_begin = 0, owned_end = 0;          ///< its shard
  std::int64_t optimizer_begin = 0, optimizer_end = 0;  ///< its master and moments
};
OwnedUnit owned_unit(const runtime::ParameterUnit& unit, const runtime::UnitPlan& plan,
                     const RankPlan& of);

/// Returns the distribution of a unit's optimizer state, gradients and parameters in updates: this
/// rank's part, or all on every rank.
runtime::Distribution held_by_owners(const runtime::UnitPlan& plan);

/// Returns the name of the storage in which a rank keeps a unit's parameters: its part if they are
/// sharded, else all.
std::string parameter_storage(const runtime::UnitPlan& plan);

/// Returns the persistent root of that storage, in the type in which the Plan keeps the unit.
runtime::ValueId kept_parameters(runtime::Graph& graph, std::size_t unit, const RankPlan& of);

}  // namespace strata::zero
