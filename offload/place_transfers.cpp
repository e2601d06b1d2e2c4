#include "offload/place_transfers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/check.h"
#include "runtime/node_inserter.h"
#include "runtime/transfer_node.h"

namespace strata::offload {
namespace {

using runtime::ByteRange;
using runtime::Graph;
using runtime::kNoValue;
using runtime::Moves;
using runtime::Node;
using runtime::Pass;
using runtime::Role;
using runtime::Tier;
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

/// Bytes of a root that hold one version.
struct Piece {
  ByteRange bytes;
  std::int32_t version;
  bool conditional;  ///< written under a predicate and nothing before
};

/// A copy of one stretch of a root on one side, for uses that stand together.
struct Region {
  ValueId root = kNoValue;
  Side side = Side::device;
  ByteRange bytes;
  int block = 0;
  Pass pass = Pass::forward;
  int first = 0, last = 0;       ///< nodes
  std::int32_t version = 0;      ///< before the first use
  std::vector<Piece> brought;    ///< read before they are written here; disjoint
  std::vector<Piece> written;    ///< disjoint
  ValueId condition = kNoValue;  ///< predicate of conditional pieces, as the writer knew it
  ValueId copy = kNoValue;       ///< root
  bool is_there = false;         ///< the Program before has filled it
};

class TransferPlacement {
 public:
  TransferPlacement(Graph& graph, const RecordsAhead& ahead) : graph_(graph), ahead_(ahead) {
    if (ahead.use)
      for (const ReadAhead& record : ahead.records) unused_[record.name] = &record;
  }

  void run() {
    const int count = static_cast<int>(graph_.nodes.size());
    for (int i = 0; i < count; ++i) visit(i);
    for (Region& region : regions_) serve(region);
    inserter_.apply(graph_);
    if (ahead_.read) read_for_next();
  }

 private:
  [[nodiscard]] Value& value(ValueId id) { return graph_.values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Node& node(int i) { return graph_.nodes[static_cast<std::size_t>(i)]; }

  void visit(int i) {
    const bool moves =
        node(i).operation->name == "copy" || runtime::is_disk_transfer(*node(i).operation);
    const ValueId condition = node(i).predicate;
    // Reads before writes: an operand in place is read first.
    for (std::size_t k = 0; k < node(i).inputs.size(); ++k)
      node(i).inputs[k] = access(i, node(i).inputs[k], false, moves, condition);
    if (condition != kNoValue) node(i).predicate = access(i, condition, false, moves);
    for (std::size_t k = 0; k < node(i).outputs.size(); ++k)
      node(i).outputs[k] = access(i, node(i).outputs[k], true, moves, condition);
  }

  /// The value that node `i` uses instead of `id`.
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
    note(region, i, id, range, write, condition);
    return view(region, id);
  }

  /// What a use brings along: see the header.
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
      // Control words are small: brought once, they serve for as long as they stay the same.
      const bool stays = value(root).role == Role::control && !write && region.written.empty();
      if (region.side == side && region.bytes.begin == bytes.begin &&
          region.bytes.end == bytes.end && (near || stays))
        return region;
    }
    Region region;
    region.root = root;
    region.side = side;
    region.bytes = bytes;
    region.block = node(i).block;
    region.pass = node(i).pass;
    region.first = region.last = i;
    region.version = value(id).version - (write ? 1 : 0);
    // One copy of a stretch at a time: a farther use begins another.
    std::erase_if(open_[root], [&](std::size_t open) {
      return regions_[open].side == side && regions_[open].bytes.overlaps(bytes);
    });
    const auto unused = unused_.find(value(root).name);
    if (unused != unused_.end() && side == Side::host) {
      STRATA_CHECK(region.version == 0, value(root).name, "was written before its update");
      region.copy = window_of(*unused->second);
      region.is_there = true;
      unused_.erase(unused);
    } else {
      region.copy = add_copy(region);
    }
    open_[root].push_back(regions_.size());
    regions_.push_back(region);
    return regions_.back();
  }

  /// Copies that are out of date after a write elsewhere, or that must go home before a read.
  void close_others(ValueId root, const ByteRange& range, bool write, const Region* mine) {
    const auto open = open_.find(root);
    if (open == open_.end()) return;
    std::erase_if(open->second, [&](std::size_t r) {
      const Region& region = regions_[r];
      return &region != mine && region.bytes.overlaps(range) && (write || !region.written.empty());
    });
  }

  void note(Region& region, int i, ValueId id, const ByteRange& range, bool write,
            ValueId condition) {
    const std::int32_t version = value(id).version;
    if (!write) {
      // Weights that layers read are many views of one unit: they come together.
      const bool whole = value(region.root).role == Role::parameter &&
                         region.pass != Pass::update && node(i).queue == runtime::Queue::compute;
      for (const ByteRange& missing : without(whole ? region.bytes : range, region))
        region.brought.push_back({missing, version, false});
      // Who reads it whatever the predicate was needs what was there before.
      for (Piece& piece : region.written)
        if (piece.conditional && piece.bytes.overlaps(range) && condition != region.condition) {
          piece.conditional = false;
          region.brought.push_back({piece.bytes, region.version, false});
        }
      return;
    }
    bool had_content = without(range, region).empty();
    std::vector<Piece> kept;
    for (const Piece& piece : region.written) {
      if (!piece.bytes.overlaps(range)) {
        kept.push_back(piece);
        continue;
      }
      if (piece.conditional) had_content = false;
      if (piece.bytes.begin < range.begin)
        kept.push_back({{piece.bytes.begin, range.begin}, piece.version, piece.conditional});
      if (range.end < piece.bytes.end)
        kept.push_back({{range.end, piece.bytes.end}, piece.version, piece.conditional});
    }
    const bool conditional = condition != kNoValue && !had_content;
    if (conditional) region.condition = condition;
    kept.push_back({range, version, conditional});
    region.written = std::move(kept);
  }

  /// What of `range` the region's copy does not hold yet.
  static std::vector<ByteRange> without(const ByteRange& range, const Region& region) {
    std::vector<ByteRange> left{range};
    for (const std::vector<Piece>* held : {&region.brought, &region.written})
      for (const Piece& piece : *held) {
        std::vector<ByteRange> rest;
        for (const ByteRange& part : left) {
          if (!part.overlaps(piece.bytes)) {
            rest.push_back(part);
            continue;
          }
          if (part.begin < piece.bytes.begin) rest.push_back({part.begin, piece.bytes.begin});
          if (piece.bytes.end < part.end) rest.push_back({piece.bytes.end, part.end});
        }
        left = std::move(rest);
      }
    return left;
  }

  ValueId add_copy(const Region& region) {
    const Value& root = value(region.root);
    Value copy;
    copy.name = root.name + (region.side == Side::host ? " (host)" : " (device)");
    copy.type = root.type;
    if (region.bytes.end - region.bytes.begin != root.type.span_bytes())
      copy.type = kernels::TensorType(
          root.type.dtype,
          kernels::Shape{(region.bytes.end - region.bytes.begin) / size_of(root.type.dtype)});
    copy.tier = region.side == Side::host ? Tier::pinned : Tier::device;
    copy.role = root.role;
    copy.version = region.version;
    return graph_.add_value(std::move(copy));
  }

  /// The root of a record's window, added where it is not there yet.
  ValueId window_of(const ReadAhead& record) {
    const auto [at, fresh] = windows_.try_emplace(record.name, kNoValue);
    if (!fresh) return at->second;
    Value window;
    window.name = record.name + " (ahead)";
    window.type = record.type;
    window.tier = Tier::pinned;
    window.storage = runtime::Storage::handed_on;
    window.role = Role::optimizer;
    window.place_bytes = record.place_bytes;
    return at->second = graph_.add_value(std::move(window));
  }

  ValueId add_home(const ReadAhead& record) {
    Value home;
    home.name = record.name;
    home.type = record.type;
    home.tier = Tier::disk;
    home.storage = runtime::Storage::persistent;
    home.role = Role::optimizer;
    return graph_.add_value(std::move(home));
  }

  /// Behind all that this Graph does to the records.
  void read_for_next() {
    std::vector<std::int32_t> latest(graph_.values.size(), 0);  // of a root
    std::map<std::string, ValueId> homes;
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      const auto root = static_cast<std::size_t>(graph_.root_of(id));
      latest[root] = std::max(latest[root], value(id).version);
      if (value(id).root == kNoValue && value(id).tier == Tier::disk) homes[value(id).name] = id;
    }
    const auto latest_of = [&](ValueId root) {
      const auto at = static_cast<std::size_t>(root);
      return graph_.at_version(root, at < latest.size() ? latest[at] : 0);
    };
    for (const ReadAhead& record : ahead_.records) {
      const auto known = homes.find(record.name);
      const ValueId home = known == homes.end() ? add_home(record) : known->second;
      graph_.nodes.push_back(runtime::transfer_node(
          graph_, latest_of(home), graph_.next_version(latest_of(window_of(record))), Moves::in,
          static_cast<int>(graph_.blocks.size()) - 1, Pass::update, "read ahead " + record.name));
    }
  }

  ValueId view(const Region& region, ValueId of) {
    const Value original = value(of);
    const ValueId id = graph_.add_view(region.copy, original.offset_bytes - region.bytes.begin,
                                       original.type, original.name);
    value(id).version = original.version;
    return id;
  }

  /// Bytes [begin, end) of a root in one version, as a flat value.
  ValueId flat(ValueId root, const ByteRange& bytes, std::int32_t version) {
    const kernels::TensorType& whole = value(root).type;
    kernels::TensorType type = whole;
    if (bytes.end - bytes.begin != whole.span_bytes())
      type = {whole.dtype, kernels::Shape{(bytes.end - bytes.begin) / size_of(whole.dtype)}};
    const ValueId id = graph_.add_view(root, bytes.begin, type, value(root).name);
    value(id).version = version;
    return id;
  }

  void serve(Region& region) {
    const bool on_disk = value(region.root).tier == Tier::disk;
    merge(region.written);
    const bool any_conditional =
        std::ranges::any_of(region.written, [](const Piece& piece) { return piece.conditional; });
    // The disk moves whole roots, and its two hops know no common predicate.
    const bool patched = on_disk && !region.written.empty() &&
                         (!covers(region) || (any_conditional && region.side == Side::device));
    if (on_disk && (patched || !region.brought.empty())) {
      region.brought = {{region.bytes, region.version, false}};
      for (Piece& piece : region.written) piece.conditional = false;
    }
    STRATA_CHECK(!on_disk || region.written.empty() || covers(region), value(region.root).name,
                 "lives on the disk and is written in parts by", node(region.last).label);
    merge(region.brought);
    if (!region.is_there)
      for (const Piece& piece : region.brought) bring(region, piece);
    for (const Piece& piece : region.written) take(region, piece);
  }

  [[nodiscard]] static bool covers(const Region& region) {
    return region.written.size() == 1 && region.written[0].bytes.begin == region.bytes.begin &&
           region.written[0].bytes.end == region.bytes.end;
  }

  /// Neighbours in one version become one piece.
  static void merge(std::vector<Piece>& pieces) {
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.bytes.begin < b.bytes.begin; });
    std::vector<Piece> merged;
    for (const Piece& piece : pieces) {
      if (!merged.empty() && merged.back().bytes.end == piece.bytes.begin &&
          merged.back().version == piece.version && merged.back().conditional == piece.conditional)
        merged.back().bytes.end = piece.bytes.end;
      else
        merged.push_back(piece);
    }
    pieces = std::move(merged);
  }

  /// A stop between disk and device.
  ValueId add_window(const Region& region) {
    Value window = value(region.copy);
    window.name = value(region.root).name + " (window)";
    window.tier = Tier::pinned;
    return graph_.add_value(std::move(window));
  }

  void bring(const Region& region, const Piece& piece) {
    const std::string name = value(region.root).name;
    const ValueId home = flat(region.root, piece.bytes, piece.version);
    const ValueId to = flat(region.copy, inside(region, piece), piece.version);
    const auto move = [&](ValueId source, ValueId target, const std::string& verb) {
      inserter_.before(region.first,
                       runtime::transfer_node(graph_, source, target, Moves::in, region.block,
                                              region.pass, verb + name));
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

  static ByteRange inside(const Region& region, const Piece& piece) {
    return {piece.bytes.begin - region.bytes.begin, piece.bytes.end - region.bytes.begin};
  }

  void take(const Region& region, const Piece& piece) {
    const std::string name = value(region.root).name;
    const Node last = node(region.last);
    const ValueId home = flat(region.root, piece.bytes, piece.version);
    const ValueId from = flat(region.copy, inside(region, piece), piece.version);
    const auto move = [&](ValueId source, ValueId to, const std::string& verb) {
      Node transfer = runtime::transfer_node(graph_, source, to, Moves::out, last.block, last.pass,
                                             verb + name);
      if (piece.conditional)
        transfer.predicate =
            transfer.queue == runtime::Queue::disk_write ? last.predicate : region.condition;
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
  const RecordsAhead& ahead_;
  std::map<std::string, const ReadAhead*> unused_;  // by name of the record
  std::map<std::string, ValueId> windows_;          // likewise
  std::vector<Region> regions_;
  std::map<ValueId, std::vector<std::size_t>> open_;  // of a root
  runtime::NodeInserter inserter_;
};

}  // namespace

void place_transfers(runtime::Graph& graph, const RecordsAhead& ahead) {
  TransferPlacement(graph, ahead).run();
}

}  // namespace strata::offload
