// Describes a model and its training as far as compiling must know them and the Plan does not say.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/graph/graph_builder.h"
#include "runtime/graph/plan.h"
#include "step/step.h"

namespace strata::compile {

/// Names what the Graph computes in the end.
enum class ModelUse : std::uint8_t {
  train,     ///< loss, with the head's gradients
  evaluate,  ///< loss, forward only, no dropout
  generate,  ///< logits of selected rows: input "rows" int32 [batch], no dropout
};

struct BuiltModel {
  runtime::Graph graph;
  runtime::ValueId loss = runtime::kNoValue;    ///< fp64 scalar (train, evaluate)
  runtime::ValueId logits = runtime::kNoValue;  ///< [batch, padded vocabulary] (generate)
};

/// Persistent name under which generation leaves the logits.
inline constexpr const char* kLogits = "logits";

/// Builds the forward Graph of one micro-batch. Parameters and blocks are the same each time.
using ModelFunction = std::function<BuiltModel(const runtime::BatchShape& shape, ModelUse use)>;

/// Bytes of host memory that writing a checkpoint uses (runtime/graph/state_names.h). All ranks
/// keep what the one needs that needs most, so that a Plan which fits one of them fits all.
struct SaveRooms {
  std::int64_t blocks = 0;             ///< data on its way to the disk
  std::int64_t arriving = 0;           ///< data from other ranks, if training waits
  std::int64_t snapshot_arriving = 0;  ///< data from other ranks, for a whole snapshot
  std::int64_t windows_arriving = 0;   ///< data from other ranks, for a snapshot by windows
  std::int64_t leaving = 0;            ///< data to other ranks, for a snapshot by windows
};
using SaveRoomsFunction = std::function<SaveRooms(const std::vector<runtime::ParameterUnit>& units,
                                                  const step::StepSettings& settings)>;

/// Its functions may be called by several threads at once.
struct TrainingModel {
  ModelFunction build;            ///< its units' segments have their weight decay
  kernels::Attributes optimizer;  ///< the optimizer's numbers, for every update
  kernels::Attributes control;    ///< attributes of step_control: clipping, loss scale, schedule
  SaveRoomsFunction save_rooms;   ///< called if the Plan saves
  std::int64_t vocabulary = 0;    ///< tokens and targets are less; 0: not known
  int layers = 0;                 ///< layers, if they are alike; else 0
  /// Makes the same model with so many layers; null if layers are not alike.
  std::function<TrainingModel(int layers)> with_layers = {};
  // The state that a run begins with:
  std::int64_t seed = 1;
  double initial_loss_scale = 1;
};

}  // namespace strata::compile
