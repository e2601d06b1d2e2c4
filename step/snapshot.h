// A snapshot holds the state of one step still in host memory, or hands it over piece by piece, so
// that it can be written while training goes on. A Program copies it: each copy waits only for the
// update that made its piece, and holds back only the next update of that piece.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/program/persistent_layout.h"
#include "step/step.h"

namespace strata::step {

/// Says where copies of state in memory go.
enum class SnapshotCopies : std::uint8_t {
  kept,     ///< copies stay in host memory
  windows,  ///< copies go to windows of pinned memory, one for each piece, and on in any order to
            ///< places of the disk that stand for a receiver (runtime/execute/outlet_disk.h)
};

/// Bytes [begin, end) of one storage that this rank saves, and the place of their copy.
struct SnapshotPiece {
  std::string storage;  ///< name in the PersistentLayout
  std::int64_t begin = 0, end = 0;
  std::string copy;  ///< name of the copy's storage, u8 [end - begin]
  /// Tier of the copy: pinned for state on the device, else pageable; disk: through a window.
  runtime::Tier tier = runtime::Tier::pinned;
};

/// Lists all that a rank saves (StateScope::saved) except state on the disk and scalars, which the
/// host reads between steps. Pieces are ascending by storage and bytes, and disjoint. With windows,
/// each is at most 16 MiB and at most an fp32 tile, unless there would be too many.
std::vector<SnapshotPiece> list_snapshot(const std::vector<runtime::ParameterUnit>& units,
                                         const StepSettings& settings,
                                         SnapshotCopies copies = SnapshotCopies::kept);

/// Names each storage on the disk from which this rank saves, once: these have two places
/// (runtime/execute/snapshot_disk.h).
std::vector<std::string> list_snapshot_records(const std::vector<runtime::ParameterUnit>& units,
                                               const StepSettings& settings);

void declare_snapshot(runtime::PersistentLayout& layout, const std::vector<SnapshotPiece>& pieces);

/// True if a micro-step of this kind, in the step after the saved one, takes the snapshot: the one
/// that contains updates does.
bool takes_snapshot(runtime::Updates updates, zero::MicroStepKind kind);

/// Adds the copies to a lowered training Graph: of the state that the last step's updates leave, if
/// this Graph contains them, else of the state at its start. Must run before place_transfers.
void add_snapshot(runtime::Graph& graph, const std::vector<SnapshotPiece>& pieces,
                  const StepSettings& settings);

}  // namespace strata::step
