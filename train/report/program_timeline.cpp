#include "train/report/program_timeline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "runtime/program/arena_alignment.h"
#include "runtime/program/memory_timeline.h"

namespace strata::train {
namespace {

using runtime::Role;
using runtime::Tier;

using TierPurposes = std::array<PurposeBytes, runtime::kTiers>;

Purpose purpose_of(Role role) {
  switch (role) {
    case Role::parameter:
      return Purpose::parameter;
    case Role::gradient:
      return Purpose::gradient;
    case Role::optimizer:
      return Purpose::optimizer;
    case Role::activation:
      return Purpose::activation;
    default:
      return Purpose::other;
  }
}

std::int64_t sum(const PurposeBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

std::int64_t& at(TierPurposes& bytes, Tier tier, Purpose purpose) {
  return bytes[static_cast<std::size_t>(tier)][static_cast<std::size_t>(purpose)];
}

/// Padding between persistent values is Purpose::other.
TierPurposes persistent_bytes(const runtime::Program& program,
                              const compile::StepPrograms& programs) {
  TierPurposes bytes{};
  for (const runtime::PersistentValue& value : programs.persistent.values())
    at(bytes, value.tier, purpose_of(value.role)) += value.type.span_bytes();
  for (const Tier tier : runtime::kAllTiers) {
    const auto t = static_cast<std::size_t>(tier);
    const std::int64_t held =
        program.persistent_bytes[t] + programs.taken_bytes(tier) - programs.arena_bytes(tier);
    at(bytes, tier, Purpose::other) += held - sum(bytes[t]);
  }
  return bytes;
}

}  // namespace

std::string_view name_of(Purpose purpose) {
  constexpr std::array<std::string_view, kPurposes> kNames{"parameter",  "gradient", "optimizer",
                                                           "activation", "scratch",  "other"};
  return kNames[static_cast<std::size_t>(purpose)];
}

std::int64_t ProgramTimeline::bytes(Tier tier, std::size_t instruction) const {
  return sum(live[instruction][static_cast<std::size_t>(tier)]);
}

std::size_t ProgramTimeline::peak(Tier tier) const {
  std::size_t most = 0;
  for (std::size_t i = 1; i < live.size(); ++i)
    if (bytes(tier, i) > bytes(tier, most)) most = i;
  return most;
}

std::vector<double> ProgramTimeline::foreseen_moments() const {
  std::vector<double> moments;
  moments.reserve(foreseen.size());
  double latest = 0;
  for (const TimeSpan& span : foreseen) moments.push_back(latest = std::max(latest, span.begin_ms));
  return moments;
}

double ProgramTimeline::mean_bytes(Tier tier) const {
  const std::vector<double> moments = foreseen_moments();
  double end = 0, area = 0;
  for (const TimeSpan& span : foreseen) end = std::max(end, span.end_ms);
  for (std::size_t i = 0; i < moments.size(); ++i)
    area += static_cast<double>(bytes(tier, i)) *
            ((i + 1 < moments.size() ? moments[i + 1] : end) - moments[i]);
  return end > 0 ? area / end : 0;
}

ProgramTimeline make_timeline(const runtime::Program& program,
                              const compile::StepPrograms& programs, double runs_per_step,
                              std::vector<TimeSpan> foreseen) {
  STRATA_CHECK(foreseen.size() == program.instructions.size());
  const std::size_t count = program.instructions.size();
  // Holds differences until they are summed below; the extra entry takes what ends with the last
  // instruction.
  std::vector<TierPurposes> live(count + 1);
  const runtime::MemoryTimeline memory(program);
  for (const runtime::BufferLife& life : memory.lives()) {
    if (life.persistent) continue;
    const Purpose purpose = life.scratch ? Purpose::scratch : purpose_of(life.role);
    at(live[static_cast<std::size_t>(life.first)], life.tier, purpose) += life.bytes;
    at(live[static_cast<std::size_t>(life.last) + 1], life.tier, purpose) -= life.bytes;
  }
  TierPurposes held = persistent_bytes(program, programs);
  for (TierPurposes& bytes : live)
    for (std::size_t t = 0; t < bytes.size(); ++t)
      for (std::size_t p = 0; p < kPurposes; ++p) bytes[t][p] = held[t][p] += bytes[t][p];
  live.pop_back();
  return {.program = &program,
          .runs_per_step = runs_per_step,
          .live = std::move(live),
          .foreseen = std::move(foreseen),
          .measured = {},
          .measured_ms = {}};
}

}  // namespace strata::train
