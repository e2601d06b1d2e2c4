#include "runtime/program/version_replay.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "runtime/graph/version_map.h"

namespace strata::runtime {
namespace {

class VersionReplay {
 public:
  VersionReplay(const Program& program, const std::vector<ValueId>& roots,
                const std::function<void(std::string)>& report)
      : program_(program), roots_(roots), report_(report) {}

  void run() {
    begin_contents();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(program_.instructions.size()); ++i) {
      const Instruction& in = program_.instructions[i];
      condition_ = in.predicate ? number_of(*in.predicate) : 0;
      for (const Operand& o : in.inputs) replay_read(i, o);
      if (in.predicate) replay_read(i, *in.predicate);
      for (const Operand& o : in.outputs) replay_write(i, o);
      if (in.workspace) replay_write(i, *in.workspace);
      const bool copies = in.operation->name == "copy" && in.inputs.size() == 1 &&
                          in.outputs.size() == 1 && !in.predicate;
      if (copies) follow_copy(in.inputs[0], in.outputs[0]);
    }
    check_end();
  }

 private:
  /// The replay's knowledge of one root.
  struct Contents {
    std::int64_t base = 0;  // offset in its arena
    int tier = 0;
    VersionMap versions;
  };

  /// A predicate as bytes of a root at one version; copies of them count as the same predicate.
  struct Predicate {
    ValueId root;
    std::int32_t version;
    std::int64_t offset;
    auto operator<=>(const Predicate&) const = default;
  };

  [[nodiscard]] Predicate original(const Operand& o) const {
    const Value& value = program_.values[static_cast<std::size_t>(o.value)];
    const Predicate here{root(o), value.version, value.offset_bytes};
    const auto from = copied_from_.find({here.root, here.version});
    if (from == copied_from_.end()) return here;
    Predicate there = from->second;
    there.offset += here.offset;
    return there;
  }

  int number_of(const Operand& predicate) {
    return predicates_.try_emplace(original(predicate), static_cast<int>(predicates_.size()) + 1)
        .first->second;
  }

  /// Notes that a copy of a root's beginning is the same predicate as what it was copied from.
  void follow_copy(const Operand& from, const Operand& to) {
    const Value& value = program_.values[static_cast<std::size_t>(to.value)];
    if (value.root == kNoValue || value.offset_bytes == 0)
      copied_from_[{root(to), value.version}] = original(from);
  }

  /// False for empty operands, and for those that leave their root, which are reported elsewhere.
  [[nodiscard]] bool inside_root(const Operand& o, const Contents& contents) const {
    const std::int64_t begin = o.offset_bytes - contents.base;
    return o.type.span_bytes() > 0 && begin >= 0 &&
           begin + o.type.span_bytes() <= program_.values[root(o)].type.span_bytes();
  }

  /// Begins with roots that hold nothing, or version 0 if they are not transient. A root's rows are
  /// those of its first strided operand.
  void begin_contents() {
    std::map<ValueId, std::int64_t> row_bytes;
    for_each([&](const Operand& o) {
      const ByteRows rows = rows_of(o.type, 0);
      if (o.bytes > 0 && !rows.contiguous()) row_bytes.try_emplace(root(o), rows.stride);
    });
    for (auto& owner : owners_) owner[0] = kNoValue;
    for_each([&](const Operand& o) {
      const ValueId id = root(o);
      const Value& whole = program_.values[id];
      if (o.bytes == 0 || whole.type.span_bytes() == 0 || contents_.count(id) != 0) return;
      const auto strided = row_bytes.find(id);
      VersionMap::Content initial;
      if (whole.storage != Storage::transient) initial.version = 0;
      Contents contents{
          o.offset_bytes - program_.values[o.value].offset_bytes, static_cast<int>(o.tier),
          VersionMap(strided == row_bytes.end() ? whole.type.span_bytes() : strided->second,
                     initial)};
      if (whole.storage != Storage::transient)
        claim(id, contents.tier, contents.base, contents.base + whole.type.span_bytes());
      contents_.emplace(id, std::move(contents));
    });
  }

  /// Gives bytes [begin, end) of an arena to `id`; what another root held there is lost.
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
        // A root with two addresses, which is reported elsewhere, may own bytes outside of itself.
        const std::int64_t base = other->second.base;
        const std::int64_t first = std::max<std::int64_t>(at->first - base, 0);
        const std::int64_t last =
            std::min(std::next(at)->first - base, program_.values[at->second].type.span_bytes());
        other->second.versions.for_each({first, last - first},
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
    const Value& value = program_.values[o.value];
    bool right = true;
    at->second.versions.for_each(
        rows_of(o.type, o.offset_bytes - at->second.base),
        [&](const VersionMap::Content& content, std::int64_t byte) {
          const bool may_be_empty = content.condition != 0 && content.condition != condition_;
          if (!right || (content.version == value.version && !may_be_empty)) return;
          right = false;
          const std::string where =
              fmt::format("'{}' at byte {}", value.name, at->second.base + byte);
          if (content.version == value.version)
            report_(describe_instruction(program_, i) + " reads " + where +
                    ", which is written under another condition only");
          else if (content.version != VersionMap::kNothing)
            report_(fmt::format("{} reads version {} of {}, which holds version {}",
                                describe_instruction(program_, i), value.version, where,
                                content.version));
          else
            report_(describe_instruction(program_, i) + " reads " + where +
                    (content.lost_to == kNoValue
                         ? std::string(" that nobody wrote")
                         : " that '" + program_.values[content.lost_to].name + "' overwrote"));
        });
  }

  /// Replays a write. An instruction that may be skipped takes the bytes from other roots, and
  /// gives first content that holds under the same condition only; of older content it makes the
  /// next version either way.
  void replay_write(std::int32_t i, const Operand& o) {
    const auto at = contents_.find(root(o));
    if (at == contents_.end()) return;
    const Value& value = program_.values[o.value];
    if (program_.values[root(o)].storage != Storage::persistent &&
        o.offset_bytes < program_.persistent_bytes[static_cast<int>(o.tier)])
      report_(describe_instruction(program_, i) + ": '" + value.name +
              "', which is not persistent, lies in persistent storage");
    const Instruction& in = program_.instructions[static_cast<std::size_t>(i)];
    claim(root(o), static_cast<int>(o.tier), o.offset_bytes, o.offset_bytes + touched_bytes(in, o));
    if (!inside_root(o, at->second)) return;
    bool right = true;
    at->second.versions.for_each(
        rows_of(o.type, o.offset_bytes - at->second.base),
        [&](VersionMap::Content& content, std::int64_t byte) {
          const bool first = content.version == VersionMap::kNothing;
          if (content.version >= value.version && right) {
            right = false;
            report_(fmt::format("{} writes version {} of '{}' at byte {}, which holds version {}",
                                describe_instruction(program_, i), value.version, value.name,
                                at->second.base + byte, content.version));
          }
          content = {value.version, kNoValue,
                     condition_ == 0 ? 0 : (first ? condition_ : content.condition)};
        });
  }

  /// Returns the roots handed on to the next Program: those that a read from the disk writes last.
  [[nodiscard]] std::set<ValueId> filled_for_next() const {
    std::set<ValueId> filled;
    for (const Instruction& in : program_.instructions)
      for (const Operand& o : in.outputs) {
        if (program_.values[root(o)].storage != Storage::handed_on) continue;
        if (in.queue == Queue::disk_read)
          filled.insert(root(o));
        else
          filled.erase(root(o));
      }
    return filled;
  }

  /// Checks that each parameter and optimizer state, which a checkpoint or the next step takes as
  /// one version, ends with one.
  void check_end() {
    const std::set<ValueId> filled = filled_for_next();
    for (auto& [id, versions] : contents_) {
      auto& contents = versions;  // a lambda takes no structured binding before clang 16
      const Value& whole = program_.values[id];
      if ((whole.storage != Storage::persistent && !filled.contains(id)) ||
          (whole.role != Role::parameter && whole.role != Role::optimizer))
        continue;
      std::int32_t first = VersionMap::kNothing;
      bool right = true;
      contents.versions.for_each(
          rows_of(whole.type, 0), [&](const VersionMap::Content& content, std::int64_t byte) {
            if (byte == 0) first = content.version;
            if (!right || (content.version == first && first != VersionMap::kNothing)) return;
            right = false;
            if (content.version == VersionMap::kNothing)
              return report_("'" + whole.name + "' is handed on to the next Program, but '" +
                             program_.values[content.lost_to].name + "' overwrote it");
            report_(fmt::format("'{}' ends with version {} at byte {} and version {} before it",
                                whole.name, content.version, contents.base + byte, first));
          });
    }
  }

  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const Instruction& in : program_.instructions) for_each_operand(in, visit);
  }

  [[nodiscard]] ValueId root(const Operand& operand) const { return roots_[operand.value]; }

  const Program& program_;
  const std::vector<ValueId>& roots_;
  const std::function<void(std::string)>& report_;
  std::map<ValueId, Contents> contents_;  // keyed by root
  int condition_ = 0;                     // condition of the current instruction; 0: none
  std::map<Predicate, int> predicates_;
  std::map<std::pair<ValueId, std::int32_t>, Predicate> copied_from_;  // keyed by root and version
  std::array<std::map<std::int64_t, ValueId>, kTiers> owners_;  // stretch of an arena -> its root
};

}  // namespace

std::string describe_instruction(const Program& program, std::int32_t index) {
  return fmt::format("#{} '{}'", index, program.instructions[index].label);
}

void replay_versions(const Program& program, const std::vector<ValueId>& roots,
                     const std::function<void(std::string)>& report) {
  VersionReplay(program, roots, report).run();
}

}  // namespace strata::runtime
