#include "compile/fit.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <utility>

#include "runtime/program/budget.h"

namespace strata::compile {
namespace {

constexpr std::size_t kMostUsers = 8;

std::vector<MemoryUser> largest_users(const StepPrograms& programs) {
  std::map<std::pair<runtime::Tier, std::string>, std::int64_t> bytes;
  for (const runtime::PersistentValue& value : programs.persistent.values())
    bytes[{value.tier, std::string(name_of(value.role))}] += value.type.span_bytes();
  for (const runtime::Tier tier : runtime::kAllTiers)
    bytes[{tier, "transient"}] = programs.arena_bytes(tier) - programs.persistent.bytes(tier);
  std::vector<MemoryUser> largest;
  for (const auto& [key, sum] : bytes)
    if (sum > 0) largest.push_back({key.first, key.second, sum});
  std::ranges::stable_sort(largest, std::ranges::greater{}, &MemoryUser::bytes);
  largest.resize(std::min(largest.size(), kMostUsers));
  return largest;
}

}  // namespace

bool Fit::fits() const {
  return !shortage && !kept_too_much && host.fits() && std::ranges::all_of(tiers, &TierFit::fits);
}

std::string describe(const Fit& fit) {
  if (const auto& kept = fit.kept_too_much)
    return fmt::format("out of host memory: {} bytes are kept there, and the Plan has {}",
                       kept->state_bytes + kept->saving_bytes, kept->budget_bytes);
  if (fit.shortage) return runtime::describe(*fit.shortage);
  if (!fit.host.fits())
    return fmt::format("out of host memory: the arenas take {} bytes, and the Plan has {}",
                       fit.host.needed_bytes, fit.host.budget_bytes);
  return fit.excess;
}

bool shares_host_memory(const runtime::Plan& plan) {
  return plan.backend == kernels::DeviceCapabilities::Backend::cpu &&
         plan.host_bytes != runtime::kUnlimited &&
         plan.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)] == runtime::kUnlimited;
}

std::int64_t host_arena_bytes(const StepPrograms& programs) {
  using enum runtime::Tier;
  const std::int64_t bytes = programs.arena_bytes(pinned) + programs.arena_bytes(pageable);
  return bytes + (shares_host_memory(programs.settings.plan) ? programs.arena_bytes(device) : 0);
}

Fit find_fit(const StepPrograms& programs, const runtime::TierBytes& budget_bytes) {
  Fit fit;
  for (const runtime::Tier tier : runtime::kAllTiers)
    fit.tiers[static_cast<std::size_t>(tier)] = {programs.arena_bytes(tier),
                                                 budget_bytes[static_cast<std::size_t>(tier)]};
  fit.host = {host_arena_bytes(programs), programs.settings.plan.host_bytes};
  fit.largest = largest_users(programs);
  for (const auto& [key, program] : programs.programs)
    if (const auto excess = runtime::over_budget(program, budget_bytes);
        fit.excess.empty() && !excess.empty())
      fit.excess = excess.front();
  return fit;
}

}  // namespace strata::compile
