// Who owns what: the Plan, and the part of each unit that one rank keeps by it.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/graph/graph.h"
#include "runtime/graph/plan.h"

namespace strata::zero {

/// The Plan as one rank sees it.
struct RankPlan {
  runtime::Plan plan;
  comm::MeshPoint at;  ///< where the rank stands on the Plan's mesh

  [[nodiscard]] int data_rank() const { return at.along(comm::MeshAxis::data); }
};

/// What a rank keeps of one unit.
struct OwnedUnit {
  comm::Partition partition;                    ///< of the unit's flat space over the data axis
  std::int64_t owned_begin = 0, owned_end = 0;  ///< its shard
  std::int64_t optimizer_begin = 0, optimizer_end = 0;  ///< master and moments held here
};
OwnedUnit owned_unit(const runtime::ParameterUnit& unit, const runtime::UnitPlan& plan,
                     const RankPlan& of);

/// Distribution of a unit's optimizer state, gradients and parameters in updates: this rank's part,
/// or all on every rank.
runtime::Distribution held_by_owners(const runtime::UnitPlan& plan);

/// Name of the storage of what a rank keeps of a unit's parameters: its part where they are
/// sharded, else all.
std::string parameter_storage(const runtime::UnitPlan& plan);

/// The persistent root of that storage, in the type in which the Plan keeps the unit.
runtime::ValueId kept_parameters(runtime::Graph& graph, std::size_t unit, const RankPlan& of);

}  // namespace strata::zero
