// Where each part of an engine's state goes in a checkpoint: every rank finds the same answer by
// itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/checkpoint/checkpoint_layout.h"
#include "train/engine/engine.h"
#include "train/engine/value_check.h"

namespace strata::train {

/// Name in optimizer.safetensors of one kind of state of a tensor: "moment1.model.norm.weight".
std::string optimizer_tensor_name(std::string_view kind, std::string_view tensor);

/// Where a save finds the bytes: in the engine as it stands between steps, or in the last snapshot.
enum class SaveSource : std::uint8_t { state, snapshot };

/// Weights under their names in the type in which the Plan keeps their unit; every other kind of
/// state as it is kept, in its own type. Tensors in unit order, of a unit kind by kind, so that a
/// rank's part of a unit is one range of a file.
class SavedState {
 public:
  SavedState(const std::vector<runtime::ParameterUnit>& units, const step::StepSettings& settings);
  explicit SavedState(const compile::StepPrograms& programs)
      : SavedState(programs.units, programs.settings) {}
  /// `saved[rank]`: what a rank saves, as it is listed (scalars left out) or cut from that.
  SavedState(const std::vector<runtime::ParameterUnit>& units, const step::StepSettings& settings,
             const std::vector<std::vector<step::StateEntry>>& saved);

  [[nodiscard]] const CheckpointLayout& layout() const { return layout_; }
  [[nodiscard]] const BlockAssignment& assignment() const { return assignment_; }

  /// Bytes of the pieces that this rank writes and others save.
  [[nodiscard]] std::int64_t arriving_bytes() const { return bytes_arriving_in(pieces()); }
  [[nodiscard]] std::int64_t bytes_arriving_in(std::span<const RoutedPiece> pieces) const;
  [[nodiscard]] std::span<const RoutedPiece> pieces() const { return assignment_.pieces; }
  /// The pieces of all ranks from `first` on that are gathered before any of them is written, where
  /// a save stands still: the same on all ranks.
  [[nodiscard]] std::span<const RoutedPiece> stretch(std::size_t first) const;
  /// The most that arrives in a stretch.
  [[nodiscard]] std::int64_t stretch_bytes() const;
  /// Bytes of pieces that this rank saves and others write.
  [[nodiscard]] std::int64_t leaving_bytes() const;
  /// Whether the piece is its file's header, which the creator of the file writes.
  [[nodiscard]] bool is_header(const Piece& piece) const;

  /// A piece that this rank saves: memory of the engine or of `buffer`, valid until either changes.
  /// Between steps, or of the snapshot (any thread, until another one is taken). `check` looks at
  /// the values.
  [[nodiscard]] std::span<const std::byte> read(const Engine& engine, SaveSource source,
                                                const Piece& piece, std::vector<std::byte>& buffer,
                                                ValueCheck& check) const;
  /// Whether a piece that this rank saves lives on the disk.
  [[nodiscard]] bool is_on_disk(const Piece& piece) const;

  /// A stretch of the files and its bytes, all of one rank's writer.
  struct Routed {
    Piece piece;
    int writer = 0;
    std::span<const std::byte> bytes;
  };
  /// Where a storage's bytes from `begin` on, which this rank saves, belong in the files; those of
  /// no tensor (alignment): nowhere. Whole elements, at which `check` looks.
  [[nodiscard]] std::vector<Routed> route(const std::string& storage, std::int64_t begin,
                                          std::span<const std::byte> bytes,
                                          ValueCheck& check) const;

 private:
  /// A run of an entry of this rank.
  struct Entry {
    Piece piece;
    step::StateEntry state;
    step::WindowRun run;
  };

  int rank_;
  CheckpointLayout layout_;
  [[nodiscard]] const Entry& entry_of(const Piece& piece) const;

  std::vector<Entry> entries_;  ///< ascending
  /// Indices of entries_, by storage and first byte there.
  std::map<std::pair<std::string, std::int64_t>, std::size_t> by_storage_;
  BlockAssignment assignment_;
};

/// Host memory that this rank's saves use (compile::TrainingModel::save_rooms).
compile::SaveRooms save_rooms(const std::vector<runtime::ParameterUnit>& units,
                              const step::StepSettings& settings);

}  // namespace strata::train
