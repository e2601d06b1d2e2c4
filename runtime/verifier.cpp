#include "runtime/verifier.h"

#include <algorithm>
#include <array>
#include <map>

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
  explicit Verifier(const Program& program) : p_(program) {}

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

  [[nodiscard]] ValueId root(const Operand& operand) const {
    const ValueId r = p_.values[operand.value].root;
    return r == kNoValue ? operand.value : r;
  }

  [[nodiscard]] bool persistent(const Operand& operand) const {
    return p_.values[root(operand)].storage == Storage::persistent;
  }

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

  /// Replays writes in list order; what a read finds must come from its own root value. An
  /// instruction that may be skipped writes nothing that one can count on, but it does overwrite.
  void check_contents() {
    for (int tier = 0; tier < kTiers; ++tier) {
      std::map<std::int64_t, ValueId> owner{{0, kNoValue}};  // stretch begin -> root that wrote it
      const auto split = [&](std::int64_t at) {
        auto next = owner.lower_bound(at);
        if (next != owner.end() && next->first == at) return next;
        return owner.emplace_hint(next, at, std::prev(next)->second);
      };
      const auto replay = [&](std::int32_t i, const Operand& o, bool write) {
        if (static_cast<int>(o.tier) != tier || o.bytes == 0 || persistent(o)) return;
        if (o.offset_bytes < p_.persistent_bytes[tier])
          report(name(i) + ": transient value '" + p_.values[o.value].name +
                 "' lies in persistent storage");
        const std::int64_t end = o.offset_bytes + o.bytes;
        auto at = split(o.offset_bytes);
        split(end);
        for (; at != owner.end() && at->first < end; ++at) {
          if (write) {
            if (!p_.instructions[i].predicate || at->second != root(o))
              at->second = p_.instructions[i].predicate ? kNoValue : root(o);
          } else if (at->second != root(o)) {
            report(name(i) + " reads '" + p_.values[o.value].name + "' at byte " +
                   std::to_string(at->first) +
                   (at->second == kNoValue
                        ? std::string(" that nobody wrote")
                        : " that '" + p_.values[at->second].name + "' overwrote"));
            return;
          }
        }
      };
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i) {
        const Instruction& in = p_.instructions[i];
        for (const Operand& o : in.inputs) replay(i, o, false);
        if (in.predicate) replay(i, *in.predicate, false);
        for (const Operand& o : in.outputs) replay(i, o, true);
        if (in.workspace) replay(i, *in.workspace, true);
      }
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
  std::vector<VectorClock> clocks_;
  std::array<std::vector<Access>, kTiers> accesses_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace strata::runtime
