// The state of one step held still in host memory, or handed over piece by piece, so that it can be
// written while training goes on: copies in a Program that wait for nothing but the update that
// made a piece, and hold back nothing but the next one of the same piece.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "step/step.h"

namespace strata::step {

/// What becomes of copies of what lives in memory.
enum class SnapshotCopies : std::uint8_t {
  kept,     ///< in host memory
  windows,  ///< of pinned memory, one for each piece; their bytes are written to places of the disk
            ///< tier that stand for whoever takes them (runtime/execute/outlet_disk.h), in no order
};

/// Bytes [begin, end) of one storage that this rank is the saver of, and where their copy lies.
struct SnapshotPiece {
  std::string storage;  ///< name in the PersistentLayout
  std::int64_t begin = 0, end = 0;
  std::string copy;  ///< name of the copy's storage, u8 [end - begin]
  /// Of the copy: pinned for what lives on the device, else pageable; disk: through a window.
  runtime::Tier tier = runtime::Tier::pinned;
};

/// All that a rank saves (StateScope::saved), but for scalars, which the host reads between steps,
/// and what lives on the disk. Ascending by storage and bytes, disjoint. Those with windows are at
/// most 16 MiB or a tile of fp32 large, or larger so that there are not many more than a thousand.
std::vector<SnapshotPiece> list_snapshot(const std::vector<runtime::ParameterUnit>& units,
                                         const StepSettings& settings,
                                         SnapshotCopies copies = SnapshotCopies::kept);

/// Names of the storages on the disk of which this rank saves something: they keep still in two
/// places (runtime/execute/snapshot_disk.h). Each once.
std::vector<std::string> list_snapshot_records(const std::vector<runtime::ParameterUnit>& units,
                                               const StepSettings& settings);

void declare_snapshot(runtime::PersistentLayout& layout, const std::vector<SnapshotPiece>& pieces);

/// Which micro-step of the step behind the one to be saved takes the snapshot: the one that holds
/// the updates, whichever step's they are.
bool takes_snapshot(runtime::Updates updates, zero::MicroStepKind position);

/// Adds the copies to a lowered training Graph: of what the updates of the step before leave, where
/// those are in this Graph, else of what stands there at its start. In front of place_transfers.
void add_snapshot(runtime::Graph& graph, const std::vector<SnapshotPiece>& pieces,
                  const StepSettings& settings);

}  // namespace strata::step
