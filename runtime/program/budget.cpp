#include "runtime/program/budget.h"

#include <fmt/core.h>
#include <algorithm>

namespace strata::runtime {
namespace {

constexpr std::size_t kListedHolders = 5;

std::string describe(const Holder& holder) {
  return fmt::format("{} {} of {}{}", holder.bytes,
                     holder.scratch ? "scratch" : std::string(name_of(holder.role)), holder.block,
                     holder.persistent ? " (kept between steps)" : "");
}

std::string describe(const Program& program, Tier tier, std::int64_t allowed_bytes) {
  const TierPeak peak = peak_of(program, tier);
  std::string text =
      fmt::format("Program '{}' needs {} bytes of tier {}, the Plan allows {}; largest there",
                  program.name, peak.needed_bytes, name_of(tier), allowed_bytes);
  if (peak.instruction >= 0)
    text += fmt::format(" at instruction {} '{}'", peak.instruction,
                        program.instructions[static_cast<std::size_t>(peak.instruction)].label);
  text += ", in bytes: ";
  std::int64_t listed = peak.other_bytes;
  for (std::size_t i = 0; i < std::min(kListedHolders, peak.holders.size()); ++i) {
    text += describe(peak.holders[i]) + ", ";
    listed += peak.holders[i].bytes;
  }
  return fmt::format(
      "{}{} in smaller ones, {} of other Programs and between buffers; raise the budget or make "
      "the job smaller",
      text, peak.needed_bytes - listed, peak.other_bytes);
}

}  // namespace

TierPeak peak_of(const Program& program, Tier tier) {
  const MemoryTimeline timeline(program);
  TierPeak peak;
  peak.needed_bytes = program.arena_bytes[static_cast<std::size_t>(tier)];
  peak.instruction = timeline.peak_instruction(tier);
  peak.holders = timeline.holders_at(tier, peak.instruction);
  peak.other_bytes = peak.needed_bytes;
  for (const Holder& holder : peak.holders) peak.other_bytes -= holder.bytes;
  return peak;
}

std::vector<std::string> over_budget(const Program& program, const TierBytes& budget_bytes) {
  std::vector<std::string> messages;
  for (std::size_t t = 0; t < budget_bytes.size(); ++t)
    if (program.arena_bytes[t] > budget_bytes[t])
      messages.push_back(describe(program, static_cast<Tier>(t), budget_bytes[t]));
  return messages;
}

}  // namespace strata::runtime
