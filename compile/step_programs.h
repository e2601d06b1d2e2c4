// All Programs of a run for one rank, over one layout of persistent storage.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/program/outlet.h"
#include "runtime/program/persistent_layout.h"
#include "runtime/program/program.h"
#include "step/snapshot.h"
#include "step/step.h"

namespace strata::compile {

enum class ProgramKind : std::uint8_t {
  train,       ///< a micro-step
  drain,       ///< of Updates::next_step: the updates of the last step
  read_ahead,  ///< reads what a step leaves in pinned memory for the updates after it
               ///< (offload::RecordsAhead): before a step that none went before
  snapshot,    ///< a micro-step that also copies the state that the step before it left
               ///< (step/snapshot.h); none: saving stands still, or nothing is saved
  evaluate,    ///< held-out loss of one micro-batch
  generate,    ///< logits of one row
};
std::string_view name_of(ProgramKind kind);

struct ProgramKey {
  ProgramKind kind = ProgramKind::train;
  zero::MicroStepKind micro_step = zero::MicroStepKind::only;  ///< of micro-steps
  /// One of Plan::shorter_sequences, for micro-steps and evaluation; 0: Plan::shape.
  std::int64_t shorter_sequence = 0;
  auto operator<=>(const ProgramKey&) const = default;
  /// A micro-step that trains on samples of Plan::shape.
  [[nodiscard]] bool is_train() const {
    return kind == ProgramKind::train && shorter_sequence == 0;
  }
};
/// "train.only", "train.snapshot", "drain"; "train.only@512" of a shorter sequence.
std::string name_of(const ProgramKey& key);

struct StepPrograms {
  std::vector<runtime::ParameterUnit> units;
  step::StepSettings settings;
  runtime::PersistentLayout persistent;
  std::map<ProgramKey, runtime::Program> programs;
  std::vector<step::SnapshotPiece> snapshot_pieces;
  std::vector<std::string> snapshot_records;  ///< storages of the disk, which have two places
  runtime::BatchShape shape;
  std::int64_t seed = 1;          ///< TrainingModel::seed
  double initial_loss_scale = 1;  ///< TrainingModel::initial_loss_scale
  std::int64_t vocabulary = 0;    ///< tokens and targets lie below it; 0: not known

  /// The only one of a kind but train, for Plan::shape; null: there is none.
  [[nodiscard]] const runtime::Program* find(ProgramKind kind) const;
  /// The Program of a kind of micro-step, which there is, for Plan::shape.
  [[nodiscard]] const runtime::Program& train(const zero::MicroStepKind& micro_step) const {
    return programs.at({ProgramKind::train, micro_step});
  }
  [[nodiscard]] bool trains() const { return find(ProgramKind::train) != nullptr; }

  /// The largest arena of all Programs, bytes of one tier.
  [[nodiscard]] std::int64_t arena_bytes(runtime::Tier tier) const;
  /// Bytes that the second places of snapshot_records take on the disk.
  [[nodiscard]] std::int64_t second_places_bytes() const;
  /// The part of the disk's arena for snapshot_pieces that go through windows: it takes no bytes of
  /// the disk.
  [[nodiscard]] runtime::Outlet outlet() const;
  [[nodiscard]] std::int64_t disk_bytes() const {
    return arena_bytes(runtime::Tier::disk) - outlet().bytes() + second_places_bytes();
  }
  /// Time of one micro-step of each kind that is scheduled, of Plan::shape.
  [[nodiscard]] std::int64_t scheduled_ns() const;
};

}  // namespace strata::compile
