// Places each part of an engine's state in a checkpoint; all ranks compute the same answer.
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

/// The name in optimizer.safetensors of one kind of state of a tensor: "moment1.model.norm.weight".
std::string optimizer_tensor_name(std::string_view kind, std::string_view tensor);

/// The source of a save's bytes: the engine as it stands between steps, or the last snapshot.
enum class SaveSource : std::uint8_t { state, snapshot };

/// The tensors of a checkpoint. Weights have their own names, and the type in which the Plan keeps
/// their unit; every other kind of state has the type in which it is kept. Tensors come in unit
/// order, and within a unit kind by kind, so that a rank's part of a unit is one range of a file.
class SavedState {
 public:
  SavedState(const std::vector<runtime::ParameterUnit>& units, const step::StepSettings& settings);
  explicit SavedState(const compile::StepPrograms& programs)
      : SavedState(programs.units, programs.settings) {}
  /// `saved[rank]`: the entries that a rank saves, without scalars: those of step::list_state, or
  /// parts of them.
  SavedState(const std::vector<runtime::ParameterUnit>& units, const step::StepSettings& settings,
             const std::vector<std::vector<step::StateEntry>>& saved);

  [[nodiscard]] const CheckpointLayout& layout() const { return layout_; }
  [[nodiscard]] const BlockAssignment& assignment() const { return assignment_; }

  /// Bytes of the pieces that other ranks save and this one writes.
  [[nodiscard]] std::int64_t arriving_bytes() const { return bytes_arriving_in(pieces()); }
  [[nodiscard]] std::int64_t bytes_arriving_in(std::span<const RoutedPiece> pieces) const;
  [[nodiscard]] std::span<const RoutedPiece> pieces() const { return assignment_.pieces; }
  /// The pieces of all ranks from `first` on that ranks exchange before they write any of them, in
  /// a save during which training stands still. The same on all ranks.
  [[nodiscard]] std::span<const RoutedPiece> stretch(std::size_t first) const;
  /// The most bytes that arrive in a stretch at any rank.
  [[nodiscard]] std::int64_t stretch_bytes() const;
  /// Bytes in memory of the pieces that this rank saves and others write.
  [[nodiscard]] std::int64_t leaving_bytes() const { return leaving_each()[index_of_rank()]; }
  /// The sizes of host memory that saves use, the same on all ranks: the most that any needs.
  [[nodiscard]] compile::SaveRooms rooms() const;
  /// True if the piece is its file's header, which the creator of the file writes.
  [[nodiscard]] bool is_header(const FilePiece& piece) const;

  /// Reads a piece that this rank saves, between steps or from the snapshot (then on any thread,
  /// until another is taken), and shows its values to `check`. The result lies in the engine's
  /// memory or in `buffer`, and is valid until either changes.
  [[nodiscard]] std::span<const std::byte> read(const Engine& engine, SaveSource source,
                                                const FilePiece& piece,
                                                std::vector<std::byte>& buffer,
                                                ValueCheck& check) const;
  /// True if a piece lives on the disk of the rank that saves it.
  [[nodiscard]] bool is_on_disk(const FilePiece& piece) const;

  /// A stretch of a file that one rank writes, and its bytes.
  struct Routed {
    FilePiece piece;
    int writer = 0;
    std::span<const std::byte> bytes;
  };
  /// Says where a storage's bytes from `begin` on, which this rank saves, belong in the files;
  /// leaves out bytes of no tensor (alignment). `bytes` are whole elements, which `check` looks at.
  [[nodiscard]] std::vector<Routed> route(const std::string& storage, std::int64_t begin,
                                          std::span<const std::byte> bytes,
                                          ValueCheck& check) const;

 private:
  /// A run of an entry that this rank saves.
  struct Entry {
    FilePiece piece;
    step::StateEntry state;
    step::WindowRun run;
  };

  [[nodiscard]] std::size_t index_of_rank() const { return static_cast<std::size_t>(rank_); }
  /// Return what bytes_arriving_in and leaving_bytes say, of each rank.
  [[nodiscard]] std::vector<std::int64_t> arriving_each(std::span<const RoutedPiece> pieces) const;
  [[nodiscard]] std::vector<std::int64_t> leaving_each() const;

  int rank_;
  int ranks_;
  CheckpointLayout layout_;
  [[nodiscard]] const Entry& entry_of(const FilePiece& piece) const;

  std::vector<Entry> entries_;  ///< sorted by place in the files
  /// Indices into entries_ by storage and first byte in it.
  std::map<std::pair<std::string, std::int64_t>, std::size_t> by_storage_;
  std::vector<FilePiece> on_disk_;  ///< of all ranks, sorted
  BlockAssignment assignment_;
};

/// The sizes of host memory that saves use (compile::TrainingModel::save_rooms).
compile::SaveRooms save_rooms(const std::vector<runtime::ParameterUnit>& units,
                              const step::StepSettings& settings);

}  // namespace strata::train
