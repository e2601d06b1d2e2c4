#include "offload/place_transfers.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "offload/copy_content.h"
#include "offload/record_windows.h"
#include "runtime/graph/node_inserter.h"
#include "runtime/graph/transfer_node.h"

namespace strata::offload {
namespace {

using runtime::ByteRange;
using runtime::Graph;
using runtime::kNoValue;
using runtime::Node;
using runtime::Pass;
using runtime::Role;
using runtime::Tier;
using runtime::TransferPurpose;
using runtime::Value;
using runtime::ValueId;

enum class Side : std::uint8_t { device, host };

Side side_of(const Node& node) {
  return node.queue == runtime::Queue::host ? Side::host : Side::device;
}

bool is_at_hand(Side side, Tier tier) {
  return side == Side::device ? tier == Tier::device
                              : tier == Tier::pinned || tier == Tier::pageable;
}

/// A copy of a part of a root on one side, for uses that are near one another.
struct Region {
  ValueId root = kNoValue;
  Side side = Side::device;
  int block = 0;
  Pass pass = Pass::forward;
  int first = 0, last = 0;  ///< indices of nodes
  CopyContent content;
  ValueId copy = kNoValue;  ///< root of the copy
  bool is_there = false;    ///< the Program before has filled the copy
};

class TransferPlacement {
 public:
  TransferPlacement(Graph& graph, const RecordsAhead& ahead)
      : graph_(graph), reads_ahead_(ahead.read), windows_(graph, ahead) {}

  void run() {
    const int count = static_cast<int>(graph_.nodes.size());
    for (int i = 0; i < count; ++i) visit(i);
    for (Region& region : regions_) serve(region);
    inserter_.apply(graph_);
    if (reads_ahead_) windows_.read_for_next();
  }

 private:
  [[nodiscard]] Value& value(ValueId id) { return graph_.values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Node& node(int i) { return graph_.nodes[static_cast<std::size_t>(i)]; }

  void visit(int i) {
    const bool moves =
        node(i).operation->name == "copy" || runtime::is_disk_transfer(*node(i).operation);
    const ValueId condition = node(i).predicate;
    // Reads before writes, since an in-place operand is read first.
    for (std::size_t k = 0; k < node(i).inputs.size(); ++k)
      node(i).inputs[k] = access(i, node(i).inputs[k], false, moves, condition);
    if (condition != kNoValue) node(i).predicate = access(i, condition, false, moves);
    for (std::size_t k = 0; k < node(i).outputs.size(); ++k)
      node(i).outputs[k] = access(i, node(i).outputs[k], true, moves, condition);
  }

  /// Returns the value that node `i` uses instead of `id`.
  ValueId access(int i, ValueId id, bool write, bool moves, ValueId condition = kNoValue) {
    const ValueId root = graph_.root_of(id);
    if (value(root).storage != runtime::Storage::persistent) return id;
    const ByteRange range = runtime::range_of(graph_, id);
    if (range.begin == range.end) return id;
    const Side side = side_of(node(i));
    if (moves || is_at_hand(side, value(id).tier)) {
      close_others(root, range, write, nullptr);
      return id;
    }
    Region& region = region_of(i, id, side, write);
    close_others(root, range, write, &region);
    region.last = i;
    if (write)
      region.content.write(range, value(id).version, condition);
    else
      region.content.read(range, comes_whole(region, node(i)), value(id).version, condition);
    return view(region, id);
  }

  /// Returns the bytes that come along with a use: see the header.
  [[nodiscard]] ByteRange stretch(ValueId id, Side side) {
    const Value& root = value(graph_.root_of(id));
    const bool whole =
        root.tier == Tier::disk || root.role == Role::control ||
        (side == Side::device && (root.role == Role::parameter || root.role == Role::gradient));
    return whole ? ByteRange{0, root.type.span_bytes()} : runtime::range_of(graph_, id);
  }

  Region& region_of(int i, ValueId id, Side side, bool write) {
    const ValueId root = graph_.root_of(id);
    const ByteRange bytes = stretch(id, side);
    for (std::size_t open : open_[root]) {
      Region& region = regions_[open];
      const bool near = region.block == node(i).block && region.pass == node(i).pass;
      // Control words are small: a copy serves other blocks, too, as long as they do not change.
      const bool stays =
          value(root).role == Role::control && !write && region.content.written().empty();
      const ByteRange& held = region.content.bytes();
      if (region.side == side && held.begin == bytes.begin && held.end == bytes.end &&
          (near || stays))
        return region;
    }
    Region region{.root = root,
                  .side = side,
                  .block = node(i).block,
                  .pass = node(i).pass,
                  .first = i,
                  .last = i,
                  .content = CopyContent(bytes, value(id).version - (write ? 1 : 0))};
    // A stretch has one open copy at a time: a use farther away begins another.
    std::erase_if(open_[root], [&](std::size_t open) {
      return regions_[open].side == side && regions_[open].content.bytes().overlaps(bytes);
    });
    if (side == Side::host) region.copy = windows_.take(value(root).name);
    region.is_there = region.copy != kNoValue;
    STRATA_CHECK(!region.is_there || region.content.version() == 0, value(root).name,
                 "was written before its update");
    if (!region.is_there) region.copy = add_copy(region);
    open_[root].push_back(regions_.size());
    regions_.push_back(region);
    return regions_.back();
  }

  /// Closes copies that a write elsewhere makes obsolete, or that must go home before a read.
  void close_others(ValueId root, const ByteRange& range, bool write, const Region* mine) {
    const auto open = open_.find(root);
    if (open == open_.end()) return;
    std::erase_if(open->second, [&](std::size_t r) {
      const Region& region = regions_[r];
      return &region != mine && region.content.bytes().overlaps(range) &&
             (write || !region.content.written().empty());
    });
  }

  /// True for weights read by a layer: they are many views of one unit and come together.
  [[nodiscard]] bool comes_whole(const Region& region, const Node& reader) {
    return value(region.root).role == Role::parameter && region.pass != Pass::update &&
           reader.queue == runtime::Queue::compute;
  }

  ValueId add_copy(const Region& region) {
    const Value& root = value(region.root);
    Value copy;
    copy.name = root.name + (region.side == Side::host ? " (host)" : " (device)");
    copy.type = part_type(root.type, region.content.bytes());
    copy.tier = region.side == Side::host ? Tier::pinned : Tier::device;
    copy.role = root.role;
    copy.distribution = root.distribution;
    copy.version = region.content.version();
    return graph_.add_value(std::move(copy));
  }

  /// Returns the type of a part of a root: flat, unless it is the whole root.
  static kernels::TensorType part_type(const kernels::TensorType& whole, const ByteRange& bytes) {
    const std::int64_t size = bytes.end - bytes.begin;
    if (size == whole.span_bytes()) return whole;
    return {whole.dtype, kernels::Shape{size / size_of(whole.dtype)}};
  }

  ValueId view(const Region& region, ValueId of) {
    const Value original = value(of);
    const ValueId id =
        graph_.add_view(region.copy, original.offset_bytes - region.content.bytes().begin,
                        original.type, original.name);
    value(id).version = original.version;
    value(id).distribution = original.distribution;
    return id;
  }

  /// Adds a flat value for a part of a root in one version.
  ValueId flat(ValueId root, const ByteRange& bytes, std::int32_t version) {
    const ValueId id =
        graph_.add_view(root, bytes.begin, part_type(value(root).type, bytes), value(root).name);
    value(id).version = version;
    return id;
  }

  void serve(Region& region) {
    CopyContent& content = region.content;
    const bool on_disk = value(region.root).tier == Tier::disk;
    content.merge();
    // The disk moves whole roots, and its two hops have no common predicate.
    const bool patched = !content.written().empty() &&
                         (!content.is_written_whole() ||
                          (content.is_written_conditionally() && region.side == Side::device));
    if (on_disk && (patched || !content.brought().empty())) content.bring_all();
    STRATA_CHECK(!on_disk || content.written().empty() || content.is_written_whole(),
                 value(region.root).name, "lives on the disk and is written in parts by",
                 node(region.last).label);
    if (!region.is_there)
      for (const VersionedRange& piece : content.brought()) bring(region, piece);
    for (const VersionedRange& piece : content.written()) take(region, piece);
  }

  /// Adds a buffer between disk and device.
  ValueId add_window(const Region& region) {
    Value window = value(region.copy);
    window.name = value(region.root).name + " (window)";
    window.tier = Tier::pinned;
    return graph_.add_value(std::move(window));
  }

  void bring(const Region& region, const VersionedRange& piece) {
    const std::string name = value(region.root).name;
    const ValueId home = flat(region.root, piece.bytes, piece.version);
    const ValueId to = flat(region.copy, inside(region, piece), piece.version);
    const auto move = [&](ValueId source, ValueId target, const std::string& verb) {
      inserter_.before(region.first,
                       runtime::transfer_node(graph_, source, target, TransferPurpose::fetch,
                                              region.block, region.pass, verb + name));
    };
    if (value(region.root).tier == Tier::disk && region.side == Side::device) {
      const ValueId window = add_window(region);
      move(home, window, "read ");
      move(window, to, "upload ");
      return;
    }
    const bool read = value(region.root).tier == Tier::disk;
    move(home, to, read ? "read " : (region.side == Side::device ? "upload " : "download "));
  }

  static ByteRange inside(const Region& region, const VersionedRange& piece) {
    const std::int64_t begin = region.content.bytes().begin;
    return {piece.bytes.begin - begin, piece.bytes.end - begin};
  }

  void take(const Region& region, const VersionedRange& piece) {
    const std::string name = value(region.root).name;
    const Node last = node(region.last);
    const ValueId home = flat(region.root, piece.bytes, piece.version);
    const ValueId from = flat(region.copy, inside(region, piece), piece.version);
    const auto move = [&](ValueId source, ValueId to, const std::string& verb) {
      Node transfer = runtime::transfer_node(graph_, source, to, TransferPurpose::write_back,
                                             last.block, last.pass, verb + name);
      if (piece.conditional)
        transfer.predicate = transfer.queue == runtime::Queue::disk_write
                                 ? last.predicate
                                 : region.content.condition();
      inserter_.after(region.last, std::move(transfer));
    };
    if (value(region.root).tier == Tier::disk && region.side == Side::device) {
      const ValueId window = add_window(region);
      value(window).version = piece.version;
      move(from, window, "download ");
      move(window, home, "write ");
      return;
    }
    const bool write = value(region.root).tier == Tier::disk;
    move(from, home, write ? "write " : (region.side == Side::device ? "download " : "upload "));
  }

  Graph& graph_;
  bool reads_ahead_;
  RecordWindows windows_;
  std::vector<Region> regions_;
  std::map<ValueId, std::vector<std::size_t>> open_;  // key: root; indices in regions_
  runtime::NodeInserter inserter_;
};

}  // namespace

void place_transfers(runtime::Graph& graph, const RecordsAhead& ahead) {
  TransferPlacement(graph, ahead).run();
}

}  // namespace strata::offload
