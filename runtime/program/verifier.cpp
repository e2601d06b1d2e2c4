#include "runtime/program/verifier.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <map>

#include "runtime/graph/version_map.h"
#include "runtime/program/root_of.h"
#include "runtime/program/version_replay.h"

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
    std::map<std::string, ValueId> persistent;  // one root per name, whatever the ids
    for (ValueId id = 0; id < static_cast<ValueId>(p_.values.size()); ++id) {
      const ValueId root = root_of(p_, id);
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
    check_within();
    replay_versions(p_, roots_, [this](std::string problem) { report(std::move(problem)); });
    check_border();
    return std::move(problems_);
  }

 private:
  void report(std::string problem) {
    if (problems_.size() < 20) problems_.push_back(std::move(problem));
  }

  [[nodiscard]] std::string name(std::int32_t i) const { return describe_instruction(p_, i); }

  /// Computes clocks_[i][q]: the latest instruction of queue q that is complete when i is.
  void compute_clocks() {
    std::array<VectorClock, kQueues> last;
    for (VectorClock& clock : last) clock.fill(-1);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i) {
      const Instruction& in = p_.instructions[i];
      VectorClock clock = last[static_cast<int>(in.queue)];
      for (std::int32_t w : in.waits) {
        if (w < 0 || w >= i) {
          report(fmt::format("{} waits for {}, which is not earlier", name(i), w));
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
        if (operand.offset_bytes < 0 ||
            operand.offset_bytes + touched_bytes(in, operand) > p_.arena_bytes[tier])
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
      const std::int64_t end =
          a.operand->offset_bytes + touched_bytes(p_.instructions[a.instruction], *a.operand);
      for (std::size_t j = i + 1; j < by_begin.size(); ++j) {
        const Access& b = *by_begin[j];
        if (b.operand->offset_bytes >= end) break;
        if (a.instruction == b.instruction || (!a.write && !b.write)) continue;
        const auto [first, second] = std::minmax(a.instruction, b.instruction);
        if (!before(first, second))
          report(fmt::format("{} and {} touch byte {} unordered", name(first), name(second),
                             b.operand->offset_bytes));
      }
    }
  }

  [[nodiscard]] ValueId root(const Operand& operand) const { return roots_[operand.value]; }

  /// Checks that operands are as large as their types say, that a root has one address everywhere,
  /// and that persistent roots (one per name) lie side by side inside persistent storage.
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
        report(fmt::format("{}: '{}' has {} bytes, its type {} {}", name(i), value.name, o.bytes,
                           o.type.to_string(), o.type.span_bytes()));
      if (o.type != value.type || o.tier != value.tier)
        report(name(i) + ": '" + value.name + "' is taken for " + o.type.to_string() + " in the " +
               std::string(name_of(o.tier)) + " tier, but it is " + value.type.to_string() +
               " in the " + std::string(name_of(value.tier)) + " tier");
      const std::int64_t begin = o.offset_bytes - value.offset_bytes;
      const std::int64_t end = begin + whole.type.span_bytes();
      if (value.offset_bytes < 0 || o.offset_bytes + o.bytes > end)
        report(name(i) + ": '" + value.name + "' leaves '" + whole.name + "'");
      if (const std::int64_t known = base.try_emplace(root(o), begin).first->second; known != begin)
        report(fmt::format("{}: '{}' lies at {} byte {}, elsewhere at {}", name(i), whole.name,
                           name_of(o.tier), begin, known));
      if (whole.storage != Storage::persistent) return;
      if (end > p_.persistent_bytes[tier])
        report(name(i) + ": persistent value '" + whole.name + "' leaves persistent storage");
      persistent_places[tier].try_emplace(whole.name, Place{begin, end});
    };
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i)
      for_each_operand(p_.instructions[i], [&](const Operand& o) { check(i, o); });
    for (int tier = 0; tier < kTiers; ++tier) {
      std::vector<std::pair<Place, std::string>> places;
      for (const auto& [value, place] : persistent_places[tier])
        if (place.begin < place.end) places.emplace_back(place, value);
      std::sort(places.begin(), places.end(),
                [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
      for (std::size_t k = 1; k < places.size(); ++k)
        if (places[k].first.begin < places[k - 1].first.end)
          report(fmt::format("persistent values '{}' and '{}' overlap at {} byte {}",
                             places[k - 1].second, places[k].second,
                             name_of(static_cast<Tier>(tier)), places[k].first.begin));
    }
  }

  /// Checks operands within each instruction, which may touch them in any order: scratch is used by
  /// nothing else, results lie apart from one another, and a result over an input takes its very
  /// place. A collective's own piece lies inside the whole instead.
  void check_within() {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(p_.instructions.size()); ++i) {
      const Instruction& in = p_.instructions[i];
      std::vector<const Operand*> reads;
      for (const Operand& o : in.inputs) reads.push_back(&o);
      if (in.predicate) {
        reads.push_back(&*in.predicate);
        if (!in.operation->predicated)
          report(name(i) + " is predicated, which " + std::string(in.operation->name) +
                 " does not know");
        if (in.predicate->bytes < static_cast<std::int64_t>(sizeof(std::uint32_t)))
          report(fmt::format("{} has a predicate of {} bytes", name(i), in.predicate->bytes));
      }
      for (const Operand& out : in.outputs) {
        for (const Operand* read : reads)
          if (share(out, *read) && !in_place(in, out, *read)) report_shared(i, out, *read);
        for (const Operand* other = &out + 1; other != in.outputs.data() + in.outputs.size();
             ++other)
          if (share(out, *other)) report_shared(i, out, *other);
      }
      if (!in.workspace) continue;
      for (const Operand& out : in.outputs) reads.push_back(&out);
      for (const Operand* operand : reads)
        if (share(*in.workspace, *operand)) report_shared(i, *in.workspace, *operand);
    }
  }

  void report_shared(std::int32_t i, const Operand& a, const Operand& b) {
    report(name(i) + " has '" + p_.values[a.value].name + "' and '" + p_.values[b.value].name +
           "' in one place");
  }

  /// True if two operands have a byte in common. Views of one root with one stride may lie between
  /// one another's rows.
  [[nodiscard]] bool share(const Operand& a, const Operand& b) const {
    if (a.tier != b.tier || a.bytes == 0 || b.bytes == 0 ||
        a.offset_bytes + a.bytes <= b.offset_bytes || b.offset_bytes + b.bytes <= a.offset_bytes)
      return false;
    const ByteRows of_a = rows_of(a.type, p_.values[a.value].offset_bytes);
    const ByteRows of_b = rows_of(b.type, p_.values[b.value].offset_bytes);
    if (root(a) != root(b) || of_a.contiguous() || of_b.contiguous() || of_a.stride != of_b.stride)
      return true;
    const std::int64_t column_a = of_a.begin % of_a.stride, column_b = of_b.begin % of_b.stride;
    return (column_b - column_a + of_a.stride) % of_a.stride < of_a.columns ||
           (column_a - column_b + of_a.stride) % of_a.stride < of_b.columns;
  }

  [[nodiscard]] bool in_place(const Instruction& in, const Operand& out,
                              const Operand& read) const {
    if (root(out) != root(read)) return false;
    const std::int64_t begin = out.offset_bytes - read.offset_bytes;
    if (!in.collective)
      return begin == 0 && out.bytes == read.bytes &&
             (out.type.contiguous() ? read.type.contiguous()
                                    : out.type.row_stride == read.type.row_stride);
    return (begin <= 0 && begin + out.bytes >= read.bytes) ||
           (begin >= 0 && begin + out.bytes <= read.bytes);
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
  std::vector<ValueId> roots_;  // the root of every value
  std::vector<VectorClock> clocks_;
  std::array<std::vector<Access>, kTiers> accesses_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace strata::runtime
