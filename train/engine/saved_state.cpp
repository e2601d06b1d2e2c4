#include "train/engine/saved_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/check.h"
#include "runtime/program/arena_alignment.h"
#include "step/optimizer_storage.h"
#include "train/checkpoint/block_writer.h"

namespace strata::train {
namespace {

/// Bytes of pieces that are exchanged before blocks are filled again; bounds the memory for them.
constexpr std::int64_t kTravelBytes = std::int64_t{16} << 20;

/// The name of an entry's tensor in the files of a checkpoint.
std::string name_in_files(const step::StateEntry& entry) {
  return entry.kind == "parameter" ? entry.name : optimizer_tensor_name(entry.kind, entry.name);
}

/// Lists what each rank saves, without scalars, which are saved as text.
std::vector<std::vector<step::StateEntry>> list_saved(
    const std::vector<runtime::ParameterUnit>& units, step::StepSettings settings) {
  std::vector<std::vector<step::StateEntry>> saved;
  for (int rank = 0; rank < settings.plan.mesh.ranks(); ++rank) {
    settings.at = comm::point_of(settings.plan.mesh, rank);
    saved.push_back(step::list_state(units, settings, step::StateScope::saved, 0));
    std::erase_if(saved.back(),
                  [](const step::StateEntry& entry) { return entry.kind == "scalar"; });
  }
  return saved;
}

using Key = std::pair<std::string, std::string>;  // kind, tensor

std::map<Key, TensorSpec> find_specs(const std::vector<std::vector<step::StateEntry>>& saved) {
  std::map<Key, TensorSpec> specs;
  for (const std::vector<step::StateEntry>& of_rank : saved)
    for (const step::StateEntry& entry : of_rank) {
      TensorSpec spec{.name = name_in_files(entry), .dtype = entry.dtype, .shape = {}};
      for (int i = 0; i < entry.shape.ndim(); ++i) spec.shape.push_back(entry.shape[i]);
      specs.try_emplace({entry.kind, entry.name}, std::move(spec));
    }
  return specs;
}

CheckpointLayout make_layout(const std::vector<runtime::ParameterUnit>& units,
                             const step::StepSettings& settings,
                             const std::vector<std::vector<step::StateEntry>>& saved) {
  const std::map<Key, TensorSpec> specs = find_specs(saved);
  std::vector<TensorSpec> model, optimizer;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto add = [&](const std::string& kind, std::vector<TensorSpec>& list) {
      for (const runtime::Segment& segment : units[u].segments)
        if (const auto spec = specs.find({kind, segment.name}); spec != specs.end())
          list.push_back(spec->second);
    };
    add("parameter", model);
    for (const step::OptimizerState& kind : step::optimizer_states(settings.plan.units[u].recipe))
      add(kind.kind, optimizer);
  }
  return {std::move(model), std::move(optimizer)};
}

bool begins_before(const FilePiece& a, const FilePiece& b) {
  return std::pair(a.file, a.begin) < std::pair(b.file, b.begin);
}

}  // namespace

std::string optimizer_tensor_name(std::string_view kind, std::string_view tensor) {
  return std::string(kind) + "." + std::string(tensor);
}

SavedState::SavedState(const std::vector<runtime::ParameterUnit>& units,
                       const step::StepSettings& settings)
    : SavedState(units, settings, list_saved(units, settings)) {}

SavedState::SavedState(const std::vector<runtime::ParameterUnit>& units,
                       const step::StepSettings& settings,
                       const std::vector<std::vector<step::StateEntry>>& saved)
    : rank_(comm::rank_of(settings.plan.mesh, settings.at)),
      ranks_(settings.plan.mesh.ranks()),
      layout_(make_layout(units, settings, saved)) {
  std::map<std::string_view, std::size_t> model, optimizer;
  for (std::size_t t = 0; t < layout_.tensors().size(); ++t) {
    const CheckpointLayout::PlacedTensor& tensor = layout_.tensors()[t];
    const bool of_model = layout_.files()[tensor.bytes.file].name.starts_with("model");
    (of_model ? model : optimizer).emplace(tensor.spec.name, t);
  }
  std::vector<std::vector<FilePiece>> pieces(saved.size());
  for (std::size_t rank = 0; rank < saved.size(); ++rank)
    for (const step::StateEntry& entry : saved[rank]) {
      const std::size_t tensor =
          (entry.kind == "parameter" ? model : optimizer).at(name_in_files(entry));
      for (const step::WindowRun& run : runs_of(entry.window)) {
        const FilePiece piece = layout_.piece(tensor, run.tensor_element, run.elements);
        pieces[rank].push_back(piece);
        if (entry.tier == runtime::Tier::disk) on_disk_.push_back(piece);
        if (static_cast<int>(rank) == rank_) entries_.push_back({piece, entry, run});
      }
    }
  std::ranges::sort(on_disk_, begins_before);
  std::ranges::sort(entries_, begins_before, &Entry::piece);
  for (std::size_t e = 0; e < entries_.size(); ++e) {
    const step::StateEntry& state = entries_[e].state;
    const std::int64_t begin = state.storage_element + entries_[e].run.storage_element;
    const bool fresh =
        by_storage_.try_emplace({state.storage, begin * size_of(state.dtype)}, e).second;
    STRATA_CHECK(fresh, state.storage, "is saved twice");
  }
  assignment_ = assign_blocks(layout_, pieces);
}

std::vector<std::int64_t> SavedState::arriving_each(std::span<const RoutedPiece> pieces) const {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks_));
  for (const RoutedPiece& routed : pieces)
    if (routed.saver != routed.writer)
      bytes[static_cast<std::size_t>(routed.writer)] += routed.piece.size_bytes();
  return bytes;
}

std::int64_t SavedState::bytes_arriving_in(std::span<const RoutedPiece> pieces) const {
  return arriving_each(pieces)[index_of_rank()];
}

std::span<const RoutedPiece> SavedState::stretch(std::size_t first) const {
  std::size_t end = first;
  for (std::int64_t travels = 0; end < pieces().size() && travels < kTravelBytes; ++end)
    if (pieces()[end].saver != pieces()[end].writer) travels += pieces()[end].piece.size_bytes();
  return pieces().subspan(first, end - first);
}

std::int64_t SavedState::stretch_bytes() const {
  std::int64_t most = 0;
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks_));
  for (std::size_t first = 0; first < pieces().size();) {
    const std::span<const RoutedPiece> together = stretch(first);
    for (const RoutedPiece& routed : together)
      if (routed.saver != routed.writer) {
        std::int64_t& arriving = bytes[static_cast<std::size_t>(routed.writer)];
        arriving += routed.piece.size_bytes();
        most = std::max(most, arriving);
      }
    for (const RoutedPiece& routed : together) bytes[static_cast<std::size_t>(routed.writer)] = 0;
    first += together.size();
  }
  return most;
}

std::vector<std::int64_t> SavedState::leaving_each() const {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks_));
  for (const RoutedPiece& routed : pieces())
    if (routed.saver != routed.writer && !is_on_disk(routed.piece))
      bytes[static_cast<std::size_t>(routed.saver)] += routed.piece.size_bytes();
  return bytes;
}

compile::SaveRooms SavedState::rooms() const {
  const std::vector<std::int64_t> arriving = arriving_each(pieces()), leaving = leaving_each();
  const auto room = [](std::int64_t bytes) {
    return runtime::room_of(bytes, runtime::Tier::pageable);
  };
  std::int64_t windows = 0;  // what arrives and leaves, at the rank with most of both
  for (std::size_t rank = 0; rank < arriving.size(); ++rank)
    windows = std::max(windows, room(arriving[rank]) + room(leaving[rank]));
  const std::int64_t mine = arriving[index_of_rank()];
  return {.blocks = kBlockWriterBytes,
          .arriving = stretch_bytes(),
          .snapshot_arriving = std::ranges::max(arriving),
          .windows_arriving = mine,
          .leaving = windows - room(mine)};
}

bool SavedState::is_header(const FilePiece& piece) const {
  return piece.begin < static_cast<std::int64_t>(layout_.files()[piece.file].header.size());
}

bool SavedState::is_on_disk(const FilePiece& piece) const {
  const auto after = std::ranges::upper_bound(on_disk_, piece, begins_before);
  return after != on_disk_.begin() && std::prev(after)->file == piece.file &&
         piece.begin < std::prev(after)->end;
}

const SavedState::Entry& SavedState::entry_of(const FilePiece& piece) const {
  const auto after = std::ranges::upper_bound(entries_, piece, begins_before, &Entry::piece);
  STRATA_CHECK(after != entries_.begin(), layout_.describe(piece), "is not of this rank");
  const Entry& entry = *std::prev(after);
  STRATA_CHECK(entry.piece.file == piece.file && piece.end <= entry.piece.end,
               layout_.describe(piece), "is not of this rank");
  return entry;
}

std::span<const std::byte> SavedState::read(const Engine& engine, SaveSource source,
                                            const FilePiece& piece, std::vector<std::byte>& buffer,
                                            ValueCheck& check) const {
  const Entry& entry = entry_of(piece);
  // The end of a block may lie inside an element.
  const std::int64_t size = size_of(entry.state.dtype), begin = piece.begin - entry.piece.begin;
  const std::int64_t first = begin / size;
  const std::int64_t count = (piece.end - entry.piece.begin + size - 1) / size - first;
  const std::int64_t at = entry.run.element + first;
  const std::span<const std::byte> whole =
      source == SaveSource::state ? engine.read(entry.state, at, count, buffer)
                                  : engine.read_snapshot(entry.state, at, count, buffer);
  check.look(name_in_files(entry.state), entry.state.dtype, whole);
  return whole.subspan(static_cast<std::size_t>(begin - first * size),
                       static_cast<std::size_t>(piece.size_bytes()));
}

std::vector<SavedState::Routed> SavedState::route(const std::string& storage, std::int64_t begin,
                                                  std::span<const std::byte> bytes,
                                                  ValueCheck& check) const {
  std::vector<Routed> all;
  const std::int64_t end = begin + static_cast<std::int64_t>(bytes.size());
  auto at = by_storage_.upper_bound({storage, begin});
  if (at != by_storage_.begin()) --at;
  for (; at != by_storage_.end() && at->first < std::pair(storage, end); ++at) {
    const step::StateEntry& state = entries_[at->second].state;
    const FilePiece& saved = entries_[at->second].piece;
    const std::int64_t starts = at->first.second;  // in the storage
    const std::int64_t from = std::max(begin, starts);
    const std::int64_t to = std::min(end, starts + saved.size_bytes());
    if (at->first.first != storage || from >= to) continue;
    check.look(
        name_in_files(state), state.dtype,
        bytes.subspan(static_cast<std::size_t>(from - begin), static_cast<std::size_t>(to - from)));
    const FilePiece part{saved.file, saved.begin + from - starts, saved.begin + to - starts};
    auto routed = std::upper_bound(assignment_.pieces.begin(), assignment_.pieces.end(), part,
                                   [](const FilePiece& wanted, const RoutedPiece& other) {
                                     return std::pair(wanted.file, wanted.begin) <
                                            std::pair(other.piece.file, other.piece.begin);
                                   });
    for (--routed; routed != assignment_.pieces.end() && routed->piece.file == part.file &&
                   routed->piece.begin < part.end;
         ++routed) {
      const FilePiece stretch{part.file, std::max(part.begin, routed->piece.begin),
                              std::min(part.end, routed->piece.end)};
      all.push_back(
          {stretch, routed->writer,
           bytes.subspan(static_cast<std::size_t>(from - begin + stretch.begin - part.begin),
                         static_cast<std::size_t>(stretch.size_bytes()))});
    }
  }
  return all;
}

compile::SaveRooms save_rooms(const std::vector<runtime::ParameterUnit>& units,
                              const step::StepSettings& settings) {
  return SavedState(units, settings).rooms();
}

}  // namespace strata::train
