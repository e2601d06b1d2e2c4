// The state of one step held still in host memory, or handed over piece by piece, so that it can be
// written while training goes on: copies in a Program that wait for nothing but the update that
// made a piece, and hold back nothing but the next one of the same piece.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/program/persistent_layout.h"
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
  /// The copy's tier: pinned for what lives on the device, else pageable; disk: through a window.
  runtime::Tier tier = runtime::Tier::pinned;
};

/// Lists all that a rank saves (StateScope::saved) except what lives on the disk and scalars, which
/// the host reads between steps. Ascending by storage and bytes, disjoint. With windows, each is at
/// most 16 MiB and at most an fp32 tile, or larger where they would be too many.
std::vector<SnapshotPiece> list_snapshot(const std::vector<runtime::ParameterUnit>& units,
                                         const StepSettings& settings,
                                         SnapshotCopies copies = SnapshotCopies::kept);

/// Names, each once, of the storages on the disk that this rank saves from: they have two places
/// (runtime/execute/snapshot_disk.h).
std::vector<std::string> list_snapshot_records(const std::vector<runtime::ParameterUnit>& units,
                                               const StepSettings& settings);

void declare_snapshot(runtime::PersistentLayout& layout, const std::vector<SnapshotPiece>& pieces);

/// Whether a micro-step of this kind, in the step after the saved one, takes the snapshot: the
/// one that holds updates does.
bool takes_snapshot(runtime::Updates updates, zero::MicroStepKind kind);

/// Adds the copies to a lowered training Graph: of what the updates of the step before leave, where
/// this Graph has them, else of what it finds at its start. Runs before place_transfers.
void add_snapshot(runtime::Graph& graph, const std::vector<SnapshotPiece>& pieces,
                  const StepSettings& settings);

}  // namespace strata::step
