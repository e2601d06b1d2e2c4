// Describes a model and its training as far as compiling must know them, beside the Plan.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/graph/graph_builder.h"
#include "runtime/graph/plan.h"
#include "step/step.h"

namespace strata::compile {

/// Names what the Graph ends in.
enum class ModelUse : std::uint8_t {
  train,     ///< loss with gradients of head
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

/// Host memory that writing a checkpoint uses on this rank, bytes (runtime/graph/state_names.h).
struct SaveRooms {
  std::int64_t blocks = 0;             ///< on their way to the disk
  std::int64_t arriving = 0;           ///< from other ranks, where training stands still meanwhile
  std::int64_t snapshot_arriving = 0;  ///< all of a snapshot
  std::int64_t leaving = 0;            ///< to other ranks, of a snapshot that goes through windows
};
using SaveRoomsFunction = std::function<SaveRooms(const std::vector<runtime::ParameterUnit>& units,
                                                  const step::StepSettings& settings)>;

struct TrainingModel {
  ModelFunction build;            ///< segments of its units have their weight decay
  kernels::Attributes optimizer;  ///< of every update: numbers of the optimizer
  kernels::Attributes control;    ///< of step_control: clipping, loss scale, schedule
  SaveRoomsFunction save_rooms;   ///< asked where the Plan saves
  std::int64_t vocabulary = 0;    ///< tokens and targets lie below it; 0: not known
  // The state begins with these.
  std::int64_t seed = 1;
  double initial_loss_scale = 1;
};

}  // namespace strata::compile
