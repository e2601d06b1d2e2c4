#include "train/session/status_listener.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "train/run/page_watch.h"

namespace strata::train {

void StatusListener::operator()(const RunEvent& event) {
  if (const auto* entered = std::get_if<Entered>(&event)) page_.set_phase(entered->phase);
  if (const auto* equipping = std::get_if<Equipping>(&event)) equip(*equipping);
  if (const auto* from = std::get_if<GoesOn>(&event); from != nullptr && from->is_own)
    PageWatch(&page_).set_committed(from->step, from->directory);
  // A run goes on from a checkpoint that is not finite only if it is named.
  if (const auto* saved = std::get_if<Saved>(&event); saved != nullptr && saved->not_finite.empty())
    PageWatch(&page_).set_committed(saved->step, saved->directory);
  if (const auto* done = std::get_if<StepDone>(&event)) show(*done);
  if (std::holds_alternative<Encoding>(event) || std::holds_alternative<Evaluating>(event))
    page_.beat();
}

void StatusListener::show(const StepDone& step) {
  const std::array<std::int64_t, 4> tiers{step.arena_bytes, step.pinned_arena_bytes,
                                          step.pageable_arena_bytes, step.disk_arena_bytes};
  for (std::size_t tier = 0; tier < tiers.size(); ++tier)
    page_.data().tier_bytes[tier].store(tiers[tier], std::memory_order_relaxed);
  if (step.work_seconds > 0) page_.add_work(step.work_seconds);
  page_.set_rates(step.metrics.loss, step.smoothed_tokens_per_second);
}

}  // namespace strata::train
