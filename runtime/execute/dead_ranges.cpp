#include "runtime/execute/dead_ranges.h"

#include <algorithm>
#include <map>

#include "runtime/program/arena_alignment.h"
#include "runtime/program/root_of.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace strata::runtime {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kChecked = true;
void poison(std::byte* memory, std::int64_t bytes) {
  __asan_poison_memory_region(memory, static_cast<std::size_t>(bytes));
}
void unpoison(std::byte* memory, std::int64_t bytes) {
  __asan_unpoison_memory_region(memory, static_cast<std::size_t>(bytes));
}
#else
constexpr bool kChecked = false;
void poison(std::byte*, std::int64_t) {}
void unpoison(std::byte*, std::int64_t) {}
#endif

}  // namespace

DeadRanges::DeadRanges(const Program& program, const ExecutorParts& parts) {
  if (!kChecked) return;
  std::map<ValueId, std::int32_t> range_of;  // keyed by root
  touched_.resize(program.instructions.size());
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& in = program.instructions[i];
    const auto touch = [&](const Operand& o) {
      if (o.value == kNoValue) return;  // belongs to no value: there is no lifetime to follow
      const Value& value = program.values[static_cast<std::size_t>(o.value)];
      const ValueId root = root_of(program, o.value);
      const Value& whole = program.values[static_cast<std::size_t>(root)];
      const Arena* arena = parts.arenas[static_cast<std::size_t>(o.tier)];
      if (whole.storage == Storage::persistent || arena == nullptr || !arena->on_host()) return;
      const auto [at, fresh] =
          range_of.try_emplace(root, static_cast<std::int32_t>(ranges_.size()));
      // Disk transfers use the last sector of a window as a whole.
      const std::int64_t bytes = whole.type.span_bytes();
      if (fresh)
        ranges_.push_back({arena->base() + o.offset_bytes - value.offset_bytes,
                           o.tier == Tier::pinned ? room_of(bytes, o.tier) : bytes, 0});
      std::vector<std::int32_t>& touched = touched_[i];
      if (std::find(touched.begin(), touched.end(), at->second) != touched.end()) return;
      touched.push_back(at->second);
      ++ranges_[static_cast<std::size_t>(at->second)].users;
    };
    for (const Operand& o : in.inputs) touch(o);
    for (const Operand& o : in.outputs) touch(o);
    if (in.predicate) touch(*in.predicate);
    if (in.workspace) touch(*in.workspace);
  }
  for (Range& range : ranges_) {
    range.left = range.users;
    poison(range.memory, range.bytes);
  }
}

/// Unpoisons all, since later owners of these addresses may use them.
DeadRanges::~DeadRanges() {
  for (const Range& range : ranges_) unpoison(range.memory, range.bytes);
}

void DeadRanges::begin(std::int32_t instruction) {
  if (!kChecked) return;
  const std::lock_guard lock(mutex_);
  for (std::int32_t r : touched_[static_cast<std::size_t>(instruction)]) {
    Range& range = ranges_[static_cast<std::size_t>(r)];
    range.lives = true;
    unpoison(range.memory, range.bytes);
  }
}

void DeadRanges::end(std::int32_t instruction) {
  if (!kChecked) return;
  const std::lock_guard lock(mutex_);
  for (std::int32_t r : touched_[static_cast<std::size_t>(instruction)]) {
    Range& range = ranges_[static_cast<std::size_t>(r)];
    if (--range.left > 0) continue;
    range.left = range.users;
    range.lives = false;
    poison(range.memory, range.bytes);
    // Live ranges that took over some of these bytes waited for their users only: unpoison them.
    for (const Range& other : ranges_)
      if (other.lives && other.memory < range.memory + range.bytes &&
          range.memory < other.memory + other.bytes)
        unpoison(other.memory, other.bytes);
  }
}

}  // namespace strata::runtime
