#include "runtime/program/budget.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/program/arena_alignment.h"

namespace strata::runtime {
namespace {

constexpr std::size_t kListedConsumers = 5;

/// The first and the last instruction that touch a root.
struct Touches {
  int first = 0;
  int last = 0;
};

class PeakFinder {
 public:
  PeakFinder(const Program& program, Tier tier) : program_(program), tier_(tier) {}

  TierPeak find() {
    for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) touch_all(i);
    TierPeak peak;
    peak.needed_bytes = program_.arena_bytes[static_cast<std::size_t>(tier_)];
    peak.instruction = peak_instruction();
    peak.consumers = consumers_at(peak.instruction);
    peak.other_bytes = peak.needed_bytes;
    for (const Consumer& consumer : peak.consumers) peak.other_bytes -= consumer.bytes;
    return peak;
  }

 private:
  void touch_all(int i) {
    const Instruction& in = program_.instructions[static_cast<std::size_t>(i)];
    for (const Operand& operand : in.inputs) touch(i, operand);
    for (const Operand& operand : in.outputs) touch(i, operand);
    if (in.predicate) touch(i, *in.predicate);
    if (in.workspace) touch(i, *in.workspace);
  }

  void touch(int i, const Operand& operand) {
    if (operand.tier != tier_) return;
    const ValueId root = value(operand.value).root;
    lives_.try_emplace(root == kNoValue ? operand.value : root, Touches{i, i}).first->second.last =
        i;
  }

  [[nodiscard]] const Value& value(ValueId id) const {
    return program_.values[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] bool is_persistent(ValueId root) const {
    return value(root).storage == Storage::persistent;
  }

  /// Returns the bytes that the layout reserves for a root.
  [[nodiscard]] std::int64_t bytes_of(ValueId root) const {
    return room_of(value(root).type.span_bytes(), tier_);
  }

  [[nodiscard]] int peak_instruction() const {
    std::vector<std::int64_t> change(program_.instructions.size() + 1, 0);
    for (const auto& [root, life] : lives_) {
      if (is_persistent(root)) continue;
      change[static_cast<std::size_t>(life.first)] += bytes_of(root);
      change[static_cast<std::size_t>(life.last) + 1] -= bytes_of(root);
    }
    std::int64_t live = 0, most = 0;
    int peak = -1;
    for (std::size_t i = 0; i < change.size(); ++i) {
      live += change[i];
      if (live <= most) continue;
      most = live;
      peak = static_cast<int>(i);
    }
    return peak;
  }

  [[nodiscard]] std::vector<Consumer> consumers_at(int instruction) const {
    std::map<std::tuple<Role, bool, int>, std::int64_t> bytes;  // keys: role, persistent, block
    for (const auto& [root, life] : lives_) {
      const bool lives = life.first <= instruction && instruction <= life.last;
      if (!is_persistent(root) && !lives) continue;
      const int block = program_.instructions[static_cast<std::size_t>(life.first)].block;
      bytes[{value(root).role, is_persistent(root), block}] += bytes_of(root);
    }
    std::vector<Consumer> consumers;
    for (const auto& [key, size] : bytes) {
      const auto& [role, persistent, block] = key;
      if (size > 0)
        consumers.push_back(
            {role, persistent, program_.blocks[static_cast<std::size_t>(block)], size});
    }
    std::stable_sort(consumers.begin(), consumers.end(),
                     [](const Consumer& a, const Consumer& b) { return a.bytes > b.bytes; });
    return consumers;
  }

  const Program& program_;
  Tier tier_;
  std::map<ValueId, Touches> lives_;  ///< keyed by root of the tier
};

std::string describe(const Consumer& consumer) {
  return std::to_string(consumer.bytes) + " " + std::string(name_of(consumer.role)) + " of " +
         consumer.block + (consumer.persistent ? " (kept between steps)" : "");
}

std::string describe(const Program& program, Tier tier, std::int64_t allowed_bytes) {
  const TierPeak peak = peak_of(program, tier);
  std::string text = "Program '" + program.name + "' needs " + std::to_string(peak.needed_bytes) +
                     " bytes of tier " + std::string(name_of(tier)) + ", the Plan allows " +
                     std::to_string(allowed_bytes) + "; largest there";
  if (peak.instruction >= 0)
    text += " at instruction " + std::to_string(peak.instruction) + " '" +
            program.instructions[static_cast<std::size_t>(peak.instruction)].label + "'";
  text += ", in bytes: ";
  std::int64_t listed = peak.other_bytes;
  for (std::size_t i = 0; i < std::min(kListedConsumers, peak.consumers.size()); ++i) {
    text += describe(peak.consumers[i]) + ", ";
    listed += peak.consumers[i].bytes;
  }
  return text + std::to_string(peak.needed_bytes - listed) + " in smaller ones, " +
         std::to_string(peak.other_bytes) +
         " of other Programs and between buffers; raise the budget or make the job smaller";
}

}  // namespace

TierPeak peak_of(const Program& program, Tier tier) { return PeakFinder(program, tier).find(); }

std::vector<std::string> over_budget(const Program& program, const TierBytes& budget_bytes) {
  std::vector<std::string> messages;
  for (std::size_t t = 0; t < budget_bytes.size(); ++t)
    if (program.arena_bytes[t] > budget_bytes[t])
      messages.push_back(describe(program, static_cast<Tier>(t), budget_bytes[t]));
  return messages;
}

}  // namespace strata::runtime
