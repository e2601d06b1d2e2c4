// All Programs of a run for one rank: built from shapes alone, before any weight is read, so that
// memory is known before it is asked for.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "comm/communicator.h"
#include "machine/machine.h"
#include "runtime/outlet_disk.h"
#include "runtime/program.h"
#include "train/config/options.h"
#include "train/models/transformer.h"
#include "zero/snapshot.h"
#include "zero/step.h"

namespace strata::train {

struct ProgramSet {
  std::vector<runtime::ParameterUnit> units;
  zero::StepSettings settings;
  runtime::PersistentLayout persistent;
  std::map<zero::Position, runtime::Program> train;
  std::optional<runtime::Program> drain;  ///< of Updates::next_step: those of the last step
  /// Reads what a step leaves in pinned memory for the updates behind it (offload::RecordsAhead):
  /// before a step that none went before.
  std::optional<runtime::Program> read_ahead;
  /// The micro-step of `snapshot_position` that also copies the state that the step before it left
  /// (zero/snapshot.h); none: saving stands still, or nothing is saved.
  std::optional<runtime::Program> snapshot;
  zero::Position snapshot_position = zero::Position::only;
  std::vector<zero::SnapshotPiece> snapshot_pieces;
  std::vector<std::string> snapshot_records;  ///< storages of the disk, which have two places
  std::optional<runtime::Program> evaluate;
  std::optional<runtime::Program> generate;
  BatchShape shape;
  std::int64_t seed = 1;          ///< TrainOptions::seed
  double initial_loss_scale = 1;  ///< as TrainOptions::loss_scale says
  std::int64_t vocabulary = 0;    ///< tokens and targets lie below it; 0: not known

  /// The largest arena of all Programs, bytes of one tier.
  [[nodiscard]] std::int64_t arena_bytes(runtime::Tier tier) const;
  /// What the second places of snapshot_records take of the disk, behind its arena.
  [[nodiscard]] std::int64_t second_places_bytes() const;
  /// Where snapshot_pieces that go through windows stand in the arena of the disk: that part takes
  /// nothing of it.
  [[nodiscard]] runtime::OutletDisk::Outlet outlet() const;
  [[nodiscard]] std::int64_t disk_bytes() const {
    return arena_bytes(runtime::Tier::disk) - outlet().bytes() + second_places_bytes();
  }
};

/// What is planned for saving.
enum class SaveMemory : std::uint8_t {
  none,
  writing,   ///< blocks on their way to the disk, and pieces of them from other ranks
  snapshot,  ///< and a copy of what is saved, and what other ranks send for blocks of this one
  windows,   ///< likewise, but instead of the copy there are a few windows, and room for what
             ///< other ranks are sent
};

/// Whether steps go on while a checkpoint is written.
constexpr bool takes_snapshots(SaveMemory saving) {
  return saving == SaveMemory::snapshot || saving == SaveMemory::windows;
}

/// A model of one's own: what build_model is for those of `ModelConfig`. Called for
/// ModelUse::train, and for ModelUse::evaluate where ProgramRequest::evaluate is set; parameters
/// and blocks are the same each time.
using ModelFunction = std::function<BuiltModel(const BatchShape& shape, ModelUse use)>;

struct ProgramRequest {
  ModelConfig model;  ///< with a `build_model` of one's own its vocabulary alone is read
  TrainOptions options;
  bool evaluate = false;
  int local_ranks = 1;  ///< of this machine: they share its memory
  SaveMemory saving = SaveMemory::none;
  /// False: transfers stand where they are needed, overlap nothing and take the least memory; found
  /// much faster.
  bool scheduled = true;
  ModelFunction build_model = {};  ///< empty: of `model`
};

/// Graph, plan, lowering of every position that the accumulation needs. SaveMemory::windows costs
/// four windows of pinned memory more than SaveMemory::writing, and what travels between ranks.
/// `communicator` gives rank, world and workspace sizes; nothing is sent. Throws InvalidArgument
/// that names the fields of options and model that can be no run's, OutOfMemory.
/// `machine`: as a rank has it, the same on all ranks.
ProgramSet build_programs(const ProgramRequest& request, const comm::Communicator& communicator,
                          const machine::Machine& machine);

/// One forward pass of one sequence that leaves the logits of one row (input "rows") in storage
/// kLogits. No optimizer state is kept.
ProgramSet build_generation(const ModelConfig& model, const BatchShape& shape,
                            const comm::Communicator& communicator,
                            const machine::Machine& machine);

}  // namespace strata::train
