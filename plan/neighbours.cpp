#include "plan/neighbours.h"

#include <algorithm>
#include <array>

namespace strata::plan {
namespace {

/// Returns, for instance, 8, 4, 2, 1 or 6, 3, 1: each size divides the one before.
std::vector<std::int64_t> smaller_micro_batches(std::int64_t micro_batch) {
  std::vector<std::int64_t> sizes{micro_batch};
  while (sizes.back() > 1) sizes.push_back(next_smaller_micro_batch(sizes.back()));
  return sizes;
}

/// Actions that were asked for stay.
void set_everything_again(Choices& choices) {
  if (!choices.actions.empty()) return;
  choices.again = Again::everything;
  choices.again_part = 1;
}

int highest_stage(const Choices& asked, const runtime::Plan& frame) {
  return frame.data_ranks() > 1 ? zero::kHighestStage : asked.sharding.stage;
}

/// Homes of optimizer state, parameters and activations, in this order.
using Homes = std::array<Home, 3>;
constexpr Home kStay = Home::device, kHost = Home::host, kDisk = Home::disk;
constexpr std::array<Homes, 6> kLevels{{{kHost, kStay, kStay},
                                        {kHost, kHost, kStay},
                                        {kDisk, kStay, kStay},
                                        {kDisk, kHost, kStay},
                                        {kDisk, kDisk, kStay},
                                        {kDisk, kDisk, kDisk}}};

/// True for a level that moves something more, but not beyond `reach`, and for `now` itself if it
/// uses the disk, since a new limit may send more there. Host memory gains nothing for a CPU that
/// plays the device in it.
bool is_further(const Homes& level, const Homes& now, const Reach& reach) {
  if (!reach.own_device && std::ranges::find(level, kHost) != level.end()) return false;
  for (std::size_t i = 0; i < level.size(); ++i)
    if (level[i] < now[i] || level[i] > std::max(now[i], reach.farthest)) return false;
  return level != now || std::ranges::find(now, kDisk) != now.end();
}

}  // namespace

std::int64_t next_smaller_micro_batch(std::int64_t micro_batch) {
  std::int64_t next = std::max<std::int64_t>(micro_batch / 2, 1);
  while (micro_batch % next != 0) --next;
  return next;
}

void set_micro_batch(Choices& choices, std::int64_t micro_batch) {
  choices.micro_steps *= static_cast<int>(choices.micro_batch / micro_batch);
  choices.micro_batch = micro_batch;
}

std::vector<Choices> cheapest_first(const Choices& asked, const runtime::Plan& frame) {
  std::vector<Choices> levels{asked}, all;
  const bool is_free = asked.actions.empty();
  if (is_free && asked.again == Again::nothing) levels.emplace_back(asked).again = Again::norms;
  if (is_free && (asked.again != Again::everything || asked.again_part < 1))
    set_everything_again(levels.emplace_back(asked));
  for (const Choices& level : levels)
    for (const std::int64_t micro_batch : smaller_micro_batches(asked.micro_batch))
      for (int stage = asked.sharding.stage; stage <= highest_stage(asked, frame); ++stage) {
        Choices& changed = all.emplace_back(level);
        set_micro_batch(changed, micro_batch);
        changed.sharding.stage = stage;
      }
  return all;
}

std::vector<Choices> further_homes(const Choices& asked, const runtime::Plan& frame,
                                   const Reach& reach) {
  const Homes now{asked.optimizer, asked.parameters, asked.activations};
  std::vector<Choices> all;
  if (asked.optimizer != kStay && asked.optimizer_part < 1) {
    Choices& changed = all.emplace_back(asked);
    changed.sharding.stage = highest_stage(asked, frame);
    changed.optimizer_part = 1;
  }
  for (const Homes& level : kLevels) {
    if (!is_further(level, now, reach)) continue;
    Choices changed = asked;
    changed.sharding.stage = highest_stage(asked, frame);
    changed.optimizer = level[0];
    changed.optimizer_part = 1;
    changed.parameters = level[1];
    if (asked.actions.empty()) changed.activations = level[2];
    all.push_back(changed);
    set_everything_again(changed);
    all.push_back(changed);
    if (changed.micro_batch > 1) {
      set_micro_batch(changed, 1);
      all.push_back(changed);
    }
    // Layer by layer, sums of gradients need not stay on the device.
    if (!changed.adds_sums_up()) continue;
    if (reach.own_device && !changed.sums_away) {
      changed.sums_away = true;
      all.push_back(changed);
      changed.sums_away = asked.sums_away;
    }
    if (frame.virtual_ranks > 0) continue;
    changed.layer_major = true;
    all.push_back(changed);
  }
  return all;
}

std::vector<Choices> with_less(Part part, const Choices& changed, const Choices& asked,
                               bool own_device) {
  std::vector<Choices> all;
  const auto move_less = [&](Home Choices::*kind) {
    for (const Home home : {kStay, kHost, kDisk})
      if (home >= asked.*kind && home < changed.*kind && (own_device || home != kHost))
        all.emplace_back(changed).*kind = home;
  };
  switch (part) {
    case Part::activations:
      move_less(&Choices::activations);
      break;
    case Part::parameters:
      move_less(&Choices::parameters);
      break;
    case Part::optimizer:
      move_less(&Choices::optimizer);
      for (Choices& less : all)
        if (less.optimizer == kStay) less.sums_away = asked.sums_away;
      break;
    case Part::micro_batch:
      for (const std::int64_t size : smaller_micro_batches(asked.micro_batch)) {
        if (size <= changed.micro_batch) break;
        Choices& less = all.emplace_back(changed);
        less.micro_batch = asked.micro_batch;
        less.micro_steps = asked.micro_steps;
        set_micro_batch(less, size);
        less.layer_major = less.layer_major && less.micro_steps > 1;
      }
      break;
    case Part::order:
      if (changed.layer_major != asked.layer_major)
        all.emplace_back(changed).layer_major = asked.layer_major;
      break;
    case Part::sums:
      if (changed.sums_away != asked.sums_away)
        all.emplace_back(changed).sums_away = asked.sums_away;
      break;
    case Part::again:
      if (changed.again == asked.again && changed.again_part == asked.again_part) break;
      all.push_back(changed);
      all.back().again = asked.again;
      all.back().again_part = asked.again_part;
      break;
    case Part::stage:
      for (int stage = asked.sharding.stage; stage < changed.sharding.stage; ++stage)
        all.emplace_back(changed).sharding.stage = stage;
      break;
  }
  return all;
}

}  // namespace strata::plan
