#include "runtime/program/live_bytes.h"

#include <map>

#include "runtime/program/arena_alignment.h"

namespace strata::runtime {
namespace {

struct RootLife {
  Tier tier = Tier::device;
  std::int64_t bytes = 0;
  std::size_t first = 0, last = 0;
};

}  // namespace

LiveBytes live_bytes(const Program& program) {
  const std::size_t count = program.instructions.size();
  LiveBytes live(count, program.persistent_bytes);
  std::map<ValueId, RootLife> lives;  // keyed by root
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction& in = program.instructions[i];
    const auto touch = [&](const Operand& o) {
      if (o.value == kNoValue) return;
      const Value& value = program.values[static_cast<std::size_t>(o.value)];
      const ValueId root = value.root == kNoValue ? o.value : value.root;
      const Value& whole = program.values[static_cast<std::size_t>(root)];
      if (whole.storage == Storage::persistent) return;
      RootLife& life =
          lives.try_emplace(root, RootLife{o.tier, room_of(whole.type.span_bytes(), o.tier), i, i})
              .first->second;
      life.last = i;
    };
    for (const Operand& o : in.inputs) touch(o);
    for (const Operand& o : in.outputs) touch(o);
    if (in.predicate) touch(*in.predicate);
    if (in.workspace) touch(*in.workspace);
  }
  for (const auto& [root, life] : lives)
    for (std::size_t i = life.first; i <= life.last; ++i)
      live[i][static_cast<std::size_t>(life.tier)] += life.bytes;
  return live;
}

}  // namespace strata::runtime
