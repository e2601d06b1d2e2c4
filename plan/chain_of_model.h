// Makes of a model and a Plan the problem that runtime/chain solves: blocks, options, engines.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/block_use.h"
#include "plan/saved_layers.h"
#include "plan/saved_problem.h"
#include "runtime/chain/chain.h"

namespace strata::plan {

/// The chain of a model, without a budget. Block i of the chain is block i of the model.
struct ModelChain {
  runtime::Chain chain;
  /// The meaning of each option of a class; empty for blocks that have no choice.
  std::vector<std::vector<SavedWay>> ways;
  /// Subtracted from all bytes of the chain, and to be subtracted from its budget.
  std::int64_t base_bytes = 0;
  std::int64_t runs = 0;              ///< of micro-steps in a step
  std::int64_t persistent_bytes = 0;  ///< of the device
  bool has_transfers = false;         ///< true: Programs move bytes even if no saved value leaves
  std::vector<SavedLayer> layers;
  runtime::SavedChoices nothing_chosen;
  std::int64_t work = 0;  ///< compile::Compiled::work of what was compiled for it

  /// Returns the actions on all saved values of the model.
  [[nodiscard]] std::vector<runtime::BlockActions> actions(
      const runtime::ChainChoice& choice) const;
  /// Returns the choices that people ask for in a word: everything kept, the cheap again, and from
  /// one to sixteen sixteenths of the bytes again, as SavedChoices::recompute_part takes them.
  [[nodiscard]] std::vector<runtime::ChainChoice> plain_choices() const;
  /// Returns the choice with these ways, one for each layer; empty if one is no option.
  [[nodiscard]] std::optional<runtime::ChainChoice> choice_of(
      const std::vector<SavedWay>& wanted) const;
  [[nodiscard]] const SavedWay& way_of(const runtime::ChainChoice& choice,
                                       const SavedLayer& layer) const;
};

/// Compiles the Plan without a schedule: with everything kept, and so that each way of recomputing
/// occurs in some layer of each class, where its bytes and its time are measured. Layers are of one
/// class if they save the same. The link is as fast as other transfers leave it.
ModelChain chain_of_model(const SavedProblem& problem);

/// Compiles the Plan with these actions and no limits of memory, without a schedule.
compile::Compiled compile_unscheduled(const SavedProblem& problem,
                                      std::vector<runtime::BlockActions> saved);

}  // namespace strata::plan
