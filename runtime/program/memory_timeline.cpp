#include "runtime/program/memory_timeline.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/program/arena_alignment.h"
#include "runtime/program/root_of.h"

namespace strata::runtime {
namespace {

class LifeFinder {
 public:
  explicit LifeFinder(const Program& program) : program_(program) {}

  std::vector<BufferLife> find() {
    for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) touch_all(i);
    std::vector<BufferLife> lives;
    lives.reserve(lives_.size());
    for (const auto& [root, life] : lives_) lives.push_back(life);
    return lives;
  }

 private:
  void touch_all(int i) {
    const Instruction& in = program_.instructions[static_cast<std::size_t>(i)];
    for (const Operand& operand : in.inputs) touch(i, operand);
    for (const Operand& operand : in.outputs) touch(i, operand);
    if (in.predicate) touch(i, *in.predicate);
    if (in.workspace)
      if (BufferLife* life = touch(i, *in.workspace)) life->scratch = true;
  }

  /// Returns null for an operand that belongs to no value: there is no life to follow.
  BufferLife* touch(int i, const Operand& operand) {
    if (operand.value == kNoValue) return nullptr;
    const ValueId root = root_of(program_, operand.value);
    const auto [at, fresh] = lives_.try_emplace(root);
    if (fresh) at->second = begin_life(i, root, operand.tier);
    at->second.last = i;
    return &at->second;
  }

  [[nodiscard]] BufferLife begin_life(int i, ValueId root, Tier tier) const {
    const Instruction& in = program_.instructions[static_cast<std::size_t>(i)];
    const Value& value = program_.values[static_cast<std::size_t>(root)];
    return {.root = root,
            .tier = tier,
            .role = value.role,
            .persistent = value.storage == Storage::persistent,
            .block = in.block,
            .pass = in.pass,
            .first = i,
            .last = i,
            .bytes = room_of(value.type.span_bytes(), tier)};
  }

  const Program& program_;
  std::map<ValueId, BufferLife> lives_;
};

}  // namespace

MemoryTimeline::MemoryTimeline(const Program& program)
    : program_(program), lives_(LifeFinder(program).find()) {}

LiveBytes MemoryTimeline::live_bytes() const {
  const std::size_t count = program_.instructions.size();
  LiveBytes live(count + 1, TierBytes{});  // changes at first, the last one beyond the end
  for (const BufferLife& life : lives_) {
    if (life.persistent) continue;
    const auto tier = static_cast<std::size_t>(life.tier);
    live[static_cast<std::size_t>(life.first)][tier] += life.bytes;
    live[static_cast<std::size_t>(life.last) + 1][tier] -= life.bytes;
  }
  TierBytes held = program_.persistent_bytes;
  for (TierBytes& bytes : live)
    for (std::size_t t = 0; t < bytes.size(); ++t) bytes[t] = held[t] += bytes[t];
  live.pop_back();
  return live;
}

int MemoryTimeline::peak_instruction(Tier tier) const {
  const auto t = static_cast<std::size_t>(tier);
  std::int64_t most = program_.persistent_bytes[t];
  int peak = -1;
  const LiveBytes live = live_bytes();
  for (std::size_t i = 0; i < live.size(); ++i)
    if (live[i][t] > most) {
      most = live[i][t];
      peak = static_cast<int>(i);
    }
  return peak;
}

std::vector<Holder> MemoryTimeline::holders_at(Tier tier, int instruction) const {
  std::map<std::tuple<Role, bool, bool, int>, std::int64_t> bytes;
  for (const BufferLife& life : lives_)
    if (life.tier == tier && (life.persistent || life.is_in_use(instruction)))
      bytes[{life.role, life.persistent, life.scratch, life.block}] += life.bytes;
  std::vector<Holder> holders;
  for (const auto& [key, size] : bytes) {
    const auto& [role, persistent, scratch, block] = key;
    if (size > 0)
      holders.push_back(
          {role, persistent, scratch, program_.blocks[static_cast<std::size_t>(block)], size});
  }
  std::ranges::stable_sort(holders, std::greater{}, &Holder::bytes);
  return holders;
}

}  // namespace strata::runtime
