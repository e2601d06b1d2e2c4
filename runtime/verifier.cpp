#include "runtime/verifier.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/version_map.h"

namespace strata::runtime {
namespace {

using VectorClock = std::array<std::int32_t, kQueues>;

struct Access {
  std::int32_t instruction;
  const Operand* operand;
  bool write;
};

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_(program) {
    std::map<std::string, ValueId> persistent;  // roots of one name are one, whatever their ids
    for (ValueId id = 0; id < static_cast<ValueId>(p_.values.size()); ++id) {
      const ValueId root = p_.values[id].root == kNoValue ? id : p_.values[id].root;
      const Value& whole = p_.values[root];
      roots_.push_back(whole.storage == Storage::persistent
                           ? persistent.try_emplace(whole.name, root).first->second
                           : root);
    }
  }

  std::vector<std::string> run() {
    compute_clocks();
    collect();
    check_addresses();
    for (auto& accesses : accesses_) check_order(accesses);
    check_contents();
    check_border();
    return std::move(problems_);
  }

 private:
  void report(std::string problem) {
    if (problems_.size() < 20) problems_.push_back(std::move(problem));
  }

  [[nodiscard]] std::string name(std::int32_t i) const {
    return "#" + std::to_string(i) + " '" + p_.instructions[i].label + "'";
  }

  /// clock[i][q]: the latest instruction of queue q that is complete when i has completed.
  void compute_clocks() {
    std::array<VectorClock, kQueues> last;
    for (VectorClock& clock : last) clock.fill(-1);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i) {
      const Instruction& in = p_.instructions[i];
      VectorClock clock = last[static_cast<int>(in.queue)];
      for (std::int32_t w : in.waits) {
        if (w < 0 || w >= i) {
          report(name(i) + " waits for " + std::to_string(w) + ", which is not earlier");
          continue;
        }
        for (int q = 0; q < kQueues; ++q) clock[q] = std::max(clock[q], clocks_[w][q]);
      }
      clock[static_cast<int>(in.queue)] = i;
      last[static_cast<int>(in.queue)] = clock;
      clocks_.push_back(clock);
    }
  }

  void collect() {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i) {
      const Instruction& in = p_.instructions[i];
      const auto add = [&](const Operand& operand, bool write) {
        const int tier = static_cast<int>(operand.tier);
        if (operand.offset_bytes < 0 || operand.offset_bytes + operand.bytes > p_.arena_bytes[tier])
          report(name(i) + " leaves the " + std::string(name_of(operand.tier)) + " arena");
        if (operand.bytes > 0) accesses_[tier].push_back({i, &operand, write});
      };
      for (const Operand& o : in.inputs) add(o, false);
      if (in.predicate) add(*in.predicate, false);
      for (const Operand& o : in.outputs) add(o, true);
      if (in.workspace) add(*in.workspace, true);
    }
  }

  [[nodiscard]] bool before(std::int32_t a, std::int32_t b) const {
    return clocks_[b][static_cast<int>(p_.instructions[a].queue)] >= a;
  }

  void check_order(std::vector<Access>& accesses) {
    std::vector<const Access*> by_begin;
    for (const Access& a : accesses) by_begin.push_back(&a);
    std::stable_sort(by_begin.begin(), by_begin.end(), [](const Access* a, const Access* b) {
      return a->operand->offset_bytes < b->operand->offset_bytes;
    });
    for (std::size_t i = 0; i < by_begin.size(); ++i) {
      const Access& a = *by_begin[i];
      const std::int64_t end = a.operand->offset_bytes + a.operand->bytes;
      for (std::size_t j = i + 1; j < by_begin.size(); ++j) {
        const Access& b = *by_begin[j];
        if (b.operand->offset_bytes >= end) break;
        if (a.instruction == b.instruction || (!a.write && !b.write)) continue;
        const auto [first, second] = std::minmax(a.instruction, b.instruction);
        if (!before(first, second))
          report(name(first) + " and " + name(second) + " touch byte " +
                 std::to_string(b.operand->offset_bytes) + " unordered");
      }
    }
  }

  [[nodiscard]] ValueId root(const Operand& operand) const { return roots_[operand.value]; }

  /// Operands are as large as their types say; a root has one address wherever it occurs;
  /// persistent roots (one per name) lie side by side inside persistent storage.
  void check_addresses() {
    struct Place {
      std::int64_t begin, end;
    };
    std::map<ValueId, std::int64_t> base;
    std::array<std::map<std::string, Place>, kTiers> persistent_places;
    const auto check = [&](std::int32_t i, const Operand& o) {
      const Value& value = p_.values[o.value];
      const Value& whole = p_.values[root(o)];
      const int tier = static_cast<int>(o.tier);
      if (o.bytes != o.type.span_bytes())
        report(name(i) + ": '" + value.name + "' has " + std::to_string(o.bytes) +
               " bytes, its type " + o.type.to_string() + " " +
               std::to_string(o.type.span_bytes()));
      const std::int64_t begin = o.offset_bytes - value.offset_bytes;
      const std::int64_t end = begin + whole.type.span_bytes();
      if (value.offset_bytes < 0 || o.offset_bytes + o.bytes > end)
        report(name(i) + ": '" + value.name + "' leaves '" + whole.name + "'");
      if (const std::int64_t known = base.try_emplace(root(o), begin).first->second; known != begin)
        report(name(i) + ": '" + whole.name + "' lies at " + std::string(name_of(o.tier)) +
               " byte " + std::to_string(begin) + ", elsewhere at " + std::to_string(known));
      if (whole.storage != Storage::persistent) return;
      if (end > p_.persistent_bytes[tier])
        report(name(i) + ": persistent value '" + whole.name + "' leaves persistent storage");
      persistent_places[tier].try_emplace(whole.name, Place{begin, end});
    };
    for_each_operand(check);
    for (int tier = 0; tier < kTiers; ++tier) {
      std::vector<std::pair<Place, std::string>> places;
      for (const auto& [value, place] : persistent_places[tier])
        if (place.begin < place.end) places.emplace_back(place, value);
      std::sort(places.begin(), places.end(),
                [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
      for (std::size_t k = 1; k < places.size(); ++k)
        if (places[k].first.begin < places[k - 1].first.end)
          report("persistent values '" + places[k - 1].second + "' and '" + places[k].second +
                 "' overlap at " + std::string(name_of(static_cast<Tier>(tier))) + " byte " +
                 std::to_string(places[k].first.begin));
    }
  }

  template <typename Visit>
  void for_each_operand(const Visit& visit) const {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i) {
      const Instruction& in = p_.instructions[i];
      for (const Operand& o : in.inputs) visit(i, o);
      for (const Operand& o : in.outputs) visit(i, o);
      if (in.predicate) visit(i, *in.predicate);
      if (in.workspace) visit(i, *in.workspace);
    }
  }

  /// What the replay knows of one root.
  struct Contents {
    std::int64_t base = 0;  // where it lies in its arena
    int tier = 0;
    VersionMap versions;
  };

  static ByteRows rows_of(const kernels::TensorType& type, std::int64_t begin) {
    const std::int64_t element = size_of(type.dtype);
    return {begin, type.shape.cols() * element, type.shape.rows(), type.row_stride * element};
  }

  /// Operands of zero elements touch nothing; those that leave their root are reported elsewhere.
  [[nodiscard]] bool inside_root(const Operand& o, const Contents& contents) const {
    const std::int64_t begin = o.offset_bytes - contents.base;
    return o.type.span_bytes() > 0 && begin >= 0 &&
           begin + o.type.span_bytes() <= p_.values[root(o)].type.span_bytes();
  }

  /// Every root holds nothing at first, or version 0 where it is persistent. Its rows are those of
  /// its first strided operand.
  void begin_contents() {
    std::map<ValueId, std::int64_t> row_bytes;
    for_each_operand([&](std::int32_t, const Operand& o) {
      const ByteRows rows = rows_of(o.type, 0);
      if (o.bytes > 0 && !rows.contiguous()) row_bytes.try_emplace(root(o), rows.stride);
    });
    for (auto& owner : owners_) owner[0] = kNoValue;
    for_each_operand([&](std::int32_t, const Operand& o) {
      const ValueId id = root(o);
      const Value& whole = p_.values[id];
      if (o.bytes == 0 || whole.type.span_bytes() == 0 || contents_.count(id) != 0) return;
      const auto strided = row_bytes.find(id);
      VersionMap::Content initial;
      if (whole.storage == Storage::persistent) initial.version = 0;
      Contents contents{
          o.offset_bytes - p_.values[o.value].offset_bytes, static_cast<int>(o.tier),
          VersionMap(strided == row_bytes.end() ? whole.type.span_bytes() : strided->second,
                     initial)};
      if (whole.storage == Storage::persistent)
        claim(id, contents.tier, contents.base, contents.base + whole.type.span_bytes());
      contents_.emplace(id, std::move(contents));
    });
  }

  /// Bytes [begin, end) of an arena become `id`'s; what another root held there is lost.
  void claim(ValueId id, int tier, std::int64_t begin, std::int64_t end) {
    auto& owners = owners_[tier];
    const auto split = [&](std::int64_t at) {
      const auto next = owners.lower_bound(at);
      if (next == owners.end() || next->first != at)
        owners.emplace_hint(next, at, std::prev(next)->second);
    };
    begin = std::max<std::int64_t>(begin, 0);
    if (begin >= end) return;
    split(begin);
    split(end);
    for (auto at = owners.find(begin); at->first < end; ++at) {
      if (at->second == id) continue;
      if (const auto other = contents_.find(at->second); other != contents_.end()) {
        const std::int64_t first = at->first - other->second.base;
        other->second.versions.for_each({first, std::next(at)->first - at->first},
                                        [&](VersionMap::Content& content, std::int64_t) {
                                          content = {VersionMap::kNothing, id};
                                        });
      }
      at->second = id;
    }
  }

  void replay_read(std::int32_t i, const Operand& o) {
    const auto at = contents_.find(root(o));
    if (at == contents_.end() || !inside_root(o, at->second)) return;
    const Value& value = p_.values[o.value];
    bool right = true;
    at->second.versions.for_each(
        rows_of(o.type, o.offset_bytes - at->second.base),
        [&](const VersionMap::Content& content, std::int64_t byte) {
          if (!right || content.version == value.version) return;
          right = false;
          const std::string where =
              "'" + value.name + "' at byte " + std::to_string(at->second.base + byte);
          if (content.version != VersionMap::kNothing)
            report(name(i) + " reads version " + std::to_string(value.version) + " of " + where +
                   ", which holds version " + std::to_string(content.version));
          else
            report(name(i) + " reads " + where +
                   (content.lost_to == kNoValue
                        ? std::string(" that nobody wrote")
                        : " that '" + p_.values[content.lost_to].name + "' overwrote"));
        });
  }

  /// An instruction that may be skipped gives no first content that one can count on, but it takes
  /// the bytes from others; of what is there already it makes the next version either way.
  void replay_write(std::int32_t i, const Operand& o) {
    const auto at = contents_.find(root(o));
    if (at == contents_.end()) return;
    const Value& value = p_.values[o.value];
    if (p_.values[root(o)].storage == Storage::transient &&
        o.offset_bytes < p_.persistent_bytes[static_cast<int>(o.tier)])
      report(name(i) + ": transient value '" + value.name + "' lies in persistent storage");
    claim(root(o), static_cast<int>(o.tier), o.offset_bytes, o.offset_bytes + o.bytes);
    if (!inside_root(o, at->second)) return;
    bool right = true;
    at->second.versions.for_each(
        rows_of(o.type, o.offset_bytes - at->second.base),
        [&](VersionMap::Content& content, std::int64_t byte) {
          if (content.version == VersionMap::kNothing && p_.instructions[i].predicate) return;
          if (content.version >= value.version && right) {
            right = false;
            report(name(i) + " writes version " + std::to_string(value.version) + " of '" +
                   value.name + "' at byte " + std::to_string(at->second.base + byte) +
                   ", which holds version " + std::to_string(content.version));
          }
          content = {value.version, kNoValue};
        });
  }

  /// Replays the list: a read must find the version that it names in all of its bytes.
  void check_contents() {
    begin_contents();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i) {
      const Instruction& in = p_.instructions[i];
      for (const Operand& o : in.inputs) replay_read(i, o);
      if (in.predicate) replay_read(i, *in.predicate);
      for (const Operand& o : in.outputs) replay_write(i, o);
      if (in.workspace) replay_write(i, *in.workspace);
    }
    check_end();
  }

  /// What a checkpoint or the next step takes as one version of a parameter or of its optimizer
  /// state must be one.
  void check_end() {
    for (auto& [id, contents] : contents_) {
      const Value& whole = p_.values[id];
      if (whole.storage != Storage::persistent ||
          (whole.role != Role::parameter && whole.role != Role::optimizer))
        continue;
      std::int32_t first = VersionMap::kNothing;
      bool right = true;
      contents.versions.for_each(
          rows_of(whole.type, 0), [&](const VersionMap::Content& content, std::int64_t byte) {
            if (byte == 0) first = content.version;
            if (!right || content.version == first) return;
            right = false;
            report("'" + whole.name + "' ends with version " + std::to_string(content.version) +
                   " at byte " + std::to_string(contents.base + byte) + " and version " +
                   std::to_string(first) + " before it");
          });
    }
  }

  void check_border() {
    std::array<bool, kQueues> seen{};
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i) {
      const Instruction& in = p_.instructions[i];
      const int queue = static_cast<int>(in.queue);
      const std::uint32_t others = ((1u << kQueues) - 1) & ~(1u << queue);
      if (!seen[queue] && (in.border_waits & others) != others)
        report(name(i) + " starts its queue without waiting for the previous Program");
      seen[queue] = true;
    }
  }

  const Program& p_;
  std::vector<ValueId> roots_;  // of every value
  std::vector<VectorClock> clocks_;
  std::array<std::vector<Access>, kTiers> accesses_;
  std::map<ValueId, Contents> contents_;                        // of roots
  std::array<std::map<std::int64_t, ValueId>, kTiers> owners_;  // stretch of an arena -> its root
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace strata::runtime
