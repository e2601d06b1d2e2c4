// All Programs of one rank in a run, over one layout of persistent storage.
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
  drain,       ///< updates of the last step, with Updates::next_step
  read_ahead,  ///< reads what the step before would have left in pinned memory for the updates
               ///< after it (offload::RecordsAhead); runs if there was no step before
  snapshot,    ///< a micro-step that also copies the state that the step before it left
               ///< (step/snapshot.h); none if training waits for saves, or saves nothing
  evaluate,    ///< held-out loss of one micro-batch
  generate,    ///< logits of one row
};
std::string_view name_of(ProgramKind kind);

struct ProgramKey {
  ProgramKind kind = ProgramKind::train;
  zero::MicroStepKind micro_step = zero::MicroStepKind::only;  ///< used for micro-steps
  /// One of Plan::shorter_sequences, for micro-steps and evaluation; 0: the length of Plan::shape.
  std::int64_t shorter_sequence = 0;
  auto operator<=>(const ProgramKey&) const = default;
  /// True for a micro-step that trains on samples of Plan::shape.
  [[nodiscard]] bool is_train() const {
    return kind == ProgramKind::train && shorter_sequence == 0;
  }
};
/// Examples: "train.only", "train.snapshot", "drain"; "train.only@512" for a shorter sequence.
std::string name_of(const ProgramKey& key);

struct StepPrograms {
  std::vector<runtime::ParameterUnit> units;
  step::StepSettings settings;
  runtime::PersistentLayout persistent;
  std::map<ProgramKey, runtime::Program> programs;
  std::vector<step::SnapshotPiece> snapshot_pieces;
  std::vector<std::string> snapshot_records;  ///< records on the disk that have two places each
  runtime::BatchShape shape;
  std::int64_t seed = 1;          ///< TrainingModel::seed
  double initial_loss_scale = 1;  ///< TrainingModel::initial_loss_scale
  std::int64_t vocabulary = 0;    ///< tokens and targets are less; 0: not known

  /// Returns the Program of a kind (for train the first) for Plan::shape; null if there is none.
  [[nodiscard]] const runtime::Program* find(ProgramKind kind) const;
  /// Returns the Program, which must exist, of a kind of micro-step for Plan::shape.
  [[nodiscard]] const runtime::Program& train(const zero::MicroStepKind& micro_step) const {
    return programs.at({ProgramKind::train, micro_step});
  }
  [[nodiscard]] bool trains() const { return find(ProgramKind::train) != nullptr; }

  /// Returns the bytes of the largest arena that a Program has in this tier.
  [[nodiscard]] std::int64_t arena_bytes(runtime::Tier tier) const;
  /// Returns the bytes that the second places of snapshot_records take on the disk.
  [[nodiscard]] std::int64_t second_places_bytes() const;
  /// Returns the part of the disk's arena that belongs to snapshot_pieces that go through windows.
  /// It takes no bytes of the disk.
  [[nodiscard]] runtime::Outlet outlet() const;
  [[nodiscard]] std::int64_t disk_bytes() const {
    return arena_bytes(runtime::Tier::disk) - outlet().bytes() + second_places_bytes();
  }
  /// Returns the bytes that the rank takes of a tier: disk_bytes() of the disk, else the arena.
  [[nodiscard]] std::int64_t taken_bytes(runtime::Tier tier) const {
    return tier == runtime::Tier::disk ? disk_bytes() : arena_bytes(tier);
  }
  /// Returns the sum of the scheduled times of a step's micro-steps, for Plan::shape.
  [[nodiscard]] std::int64_t scheduled_ns() const;
};

}  // namespace strata::compile
