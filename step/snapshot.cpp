#include "step/snapshot.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/round_up.h"
#include "runtime/graph/node_inserter.h"
#include "runtime/graph/transfer_node.h"
#include "runtime/program/arena_alignment.h"
#include "step/state_table.h"

namespace strata::step {
namespace {

using kernels::Shape;
using kernels::TensorType;
using runtime::ByteRange;
using runtime::Graph;
using runtime::Tier;
using runtime::ValueId;

/// Rough limit on the number of pieces with windows, since each costs two instructions or more.
constexpr std::int64_t kMostPieces = 1024;
/// The size of a window; a drive gains nothing from more.
constexpr std::int64_t kWindowBytes = std::int64_t{16} << 20;

/// Bytes of a root in one version, and the node after which they hold it (-1: from the start).
struct Held {
  ByteRange bytes;
  std::int32_t version = 0;
  int after = -1;
};

/// Returns what remains of `held` after a write to `written`.
std::vector<Held> without(const std::vector<Held>& held, const ByteRange& written) {
  std::vector<Held> left;
  for (const Held& part : held) {
    if (!part.bytes.overlaps(written)) {
      left.push_back(part);
      continue;
    }
    if (part.bytes.begin < written.begin)
      left.push_back({{part.bytes.begin, written.begin}, part.version, part.after});
    if (written.end < part.bytes.end)
      left.push_back({{written.end, part.bytes.end}, part.version, part.after});
  }
  return left;
}

class SnapshotPass {
 public:
  explicit SnapshotPass(Graph& graph) : graph_(graph) {
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
      const runtime::Value& value = graph.values[static_cast<std::size_t>(id)];
      if (value.root == runtime::kNoValue && value.storage == runtime::Storage::persistent)
        roots_[value.name] = id;
    }
  }

  void run(const std::vector<SnapshotPiece>& pieces, bool behind_updates) {
    for (const SnapshotPiece& piece : pieces) {
      const auto root = roots_.find(piece.storage);
      STRATA_CHECK(root != roots_.end(), piece.storage, "is in no node of the Graph");
      held_[root->second].push_back({{piece.begin, piece.end}, 0, -1});
    }
    if (behind_updates) follow_writes();
    for (const SnapshotPiece& piece : pieces) copy(piece);
    inserter_.apply(graph_);
  }

 private:
  void follow_writes() {
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i)
      for (ValueId out : graph_.nodes[static_cast<std::size_t>(i)].outputs) {
        const auto held = held_.find(graph_.root_of(out));
        if (held == held_.end()) continue;
        const ByteRange written = range_of(graph_, out);
        for (const Held& before : std::exchange(held->second, without(held->second, written)))
          if (before.bytes.overlaps(written))
            held->second.push_back({{std::max(before.bytes.begin, written.begin),
                                     std::min(before.bytes.end, written.end)},
                                    graph_.values[static_cast<std::size_t>(out)].version,
                                    i});
      }
  }

  ValueId add_copy(const SnapshotPiece& piece, Tier tier, runtime::Storage storage) {
    runtime::Value whole;
    whole.name = storage == runtime::Storage::persistent ? piece.copy : piece.copy + " (window)";
    whole.type = TensorType(DType::u8, Shape{piece.end - piece.begin});
    whole.tier = tier;
    whole.storage = storage;
    whole.role = runtime::Role::snapshot;
    return graph_.next_version(graph_.add_value(std::move(whole)));
  }

  void copy(const SnapshotPiece& piece) {
    const ValueId home = add_copy(piece, piece.tier, runtime::Storage::persistent);
    if (piece.tier != Tier::disk) {
      copy_to(home, piece);
      return;
    }
    const ValueId window = add_copy(piece, Tier::pinned, runtime::Storage::transient);
    const int after = copy_to(window, piece);
    insert(runtime::transfer_node(graph_, window, home, runtime::TransferPurpose::write_back, 0,
                                  runtime::Pass::forward, "save " + piece.storage),
           after);
  }

  /// Adds the copies of a piece's parts; returns the node after which the last part is copied.
  int copy_to(ValueId to, const SnapshotPiece& piece) {
    const ValueId root = roots_.at(piece.storage);
    std::vector<Held> parts;
    for (const Held& part : held_.at(root))
      if (part.bytes.overlaps({piece.begin, piece.end})) parts.push_back(part);
    std::ranges::sort(parts, {}, [](const Held& part) { return part.bytes.begin; });
    int last = -1;
    for (const Held& part : parts) {
      const TensorType type(DType::u8, Shape{part.bytes.end - part.bytes.begin});
      runtime::Node node;
      node.operation = &kernels::find_operation("copy");
      node.inputs = {graph_.add_view(graph_.at_version(root, part.version), part.bytes.begin, type,
                                     piece.storage)};
      node.outputs = {graph_.add_view(to, part.bytes.begin - piece.begin, type, piece.copy)};
      node.queue = graph_.values[static_cast<std::size_t>(root)].tier == Tier::device
                       ? runtime::Queue::download
                       : runtime::Queue::host;
      node.label = "snapshot " + piece.storage;
      insert(std::move(node), part.after);
      last = std::max(last, part.after);
    }
    return last;
  }

  void insert(runtime::Node node, int after) {
    if (after < 0) return inserter_.before(0, std::move(node));
    node.block = graph_.nodes[static_cast<std::size_t>(after)].block;
    node.pass = graph_.nodes[static_cast<std::size_t>(after)].pass;
    inserter_.after(after, std::move(node));
  }

  Graph& graph_;
  std::map<std::string, ValueId> roots_;
  std::map<ValueId, std::vector<Held>> held_;  // root -> bytes to copy
  runtime::NodeInserter inserter_;
};

std::vector<SnapshotPiece> cut_into_windows(const std::vector<SnapshotPiece>& pieces,
                                            const StepSettings& settings) {
  std::int64_t all_bytes = 0;
  for (const SnapshotPiece& piece : pieces) all_bytes += piece.end - piece.begin;
  const std::int64_t most =
      std::max(std::min(settings.plan.limits.tile_elements * size_of(DType::f32), kWindowBytes),
               runtime::room_of(divide_up(all_bytes, kMostPieces), Tier::disk));
  std::vector<SnapshotPiece> cut;
  for (const SnapshotPiece& piece : pieces)
    for (std::int64_t begin = piece.begin; begin < piece.end; begin += most) {
      SnapshotPiece part = piece;
      part.begin = begin;
      part.end = std::min(begin + most, piece.end);
      part.tier = Tier::disk;
      cut.push_back(std::move(part));
    }
  return cut;
}

}  // namespace

std::vector<SnapshotPiece> list_snapshot(const std::vector<runtime::ParameterUnit>& units,
                                         const StepSettings& settings, SnapshotCopies copies) {
  std::vector<SnapshotPiece> pieces;
  for (const StateEntry& entry : list_state(units, settings, StateScope::saved, 0)) {
    if (entry.kind == "scalar" || entry.tier == Tier::disk) continue;
    for (const WindowRun& run : runs_of(entry.window)) {
      const std::int64_t begin = entry.storage_element + run.storage_element;
      pieces.push_back({.storage = entry.storage,
                        .begin = begin * size_of(entry.dtype),
                        .end = (begin + run.elements) * size_of(entry.dtype),
                        .copy = {},
                        .tier = entry.tier == Tier::device ? Tier::pinned : Tier::pageable});
    }
  }
  std::ranges::sort(pieces, {},
                    [](const SnapshotPiece& p) { return std::pair(p.storage, p.begin); });
  std::vector<SnapshotPiece> merged;
  for (SnapshotPiece& piece : pieces)
    if (!merged.empty() && merged.back().storage == piece.storage &&
        merged.back().end == piece.begin)
      merged.back().end = piece.end;
    else
      merged.push_back(std::move(piece));
  if (copies == SnapshotCopies::windows) merged = cut_into_windows(merged, settings);
  for (SnapshotPiece& piece : merged)
    piece.copy = fmt::format("snapshot/{}/{}", piece.storage, piece.begin);
  return merged;
}

std::vector<std::string> list_snapshot_records(const std::vector<runtime::ParameterUnit>& units,
                                               const StepSettings& settings) {
  std::set<std::string> names;
  for (const StateEntry& entry : list_state(units, settings, StateScope::saved, 0))
    if (entry.kind != "scalar" && entry.tier == Tier::disk) names.insert(entry.storage);
  return {names.begin(), names.end()};
}

void declare_snapshot(runtime::PersistentLayout& layout, const std::vector<SnapshotPiece>& pieces) {
  for (const SnapshotPiece& piece : pieces)
    layout.add(piece.copy, TensorType(DType::u8, Shape{piece.end - piece.begin}), piece.tier,
               runtime::Role::snapshot);
}

bool takes_snapshot(runtime::Updates updates, zero::MicroStepKind kind) {
  return updates == runtime::Updates::next_step ? kind.begins_step : kind.ends_step;
}

void add_snapshot(Graph& graph, const std::vector<SnapshotPiece>& pieces,
                  const StepSettings& settings) {
  SnapshotPass(graph).run(pieces, settings.plan.updates == runtime::Updates::next_step);
}

}  // namespace strata::step
