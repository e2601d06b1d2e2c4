#include "plan/neighbours.h"

#include <algorithm>
#include <array>

namespace strata::plan {
namespace {

/// 8, 4, 2, 1 of 8; 6, 3, 1 of 6: each divides the one before.
std::vector<std::int64_t> smaller_micro_batches(std::int64_t micro_batch) {
  std::vector<std::int64_t> sizes{micro_batch};
  while (sizes.back() > 1) {
    std::int64_t next = sizes.back() / 2;
    while (sizes.back() % next != 0) --next;
    sizes.push_back(next);
  }
  return sizes;
}

/// With as many samples in a step.
void set_micro_batch(Choices& choices, std::int64_t micro_batch) {
  choices.micro_steps *= static_cast<int>(choices.micro_batch / micro_batch);
  choices.micro_batch = micro_batch;
}

void set_everything_again(Choices& choices) {
  choices.again = Again::everything;
  choices.again_part = 1;
}

int highest_stage(const Choices& asked, const runtime::Plan& frame) {
  return frame.data_ranks() > 1 ? zero::kHighestStage : asked.sharding.stage;
}

/// Of optimizer state, parameters and activations.
using Homes = std::array<Home, 3>;
constexpr Home kStay = Home::device, kHost = Home::host, kDisk = Home::disk;
constexpr std::array<Homes, 6> kLevels{{{kHost, kStay, kStay},
                                        {kHost, kHost, kStay},
                                        {kDisk, kStay, kStay},
                                        {kDisk, kHost, kStay},
                                        {kDisk, kDisk, kStay},
                                        {kDisk, kDisk, kDisk}}};

/// Levels that move something more, and the one of `now` where it has something on the disk: within
/// a limit more goes there. Host memory gains a CPU nothing that plays the device in it.
bool is_further(const Homes& level, const Homes& now, bool own_device) {
  if (!own_device && std::ranges::find(level, kHost) != level.end()) return false;
  for (std::size_t i = 0; i < level.size(); ++i)
    if (level[i] < now[i]) return false;
  return level != now || std::ranges::find(now, kDisk) != now.end();
}

}  // namespace

std::vector<Choices> cheapest_first(const Choices& asked, const runtime::Plan& frame) {
  std::vector<Choices> levels{asked}, all;
  if (asked.again == Again::nothing) levels.emplace_back(asked).again = Again::norms;
  if (asked.again != Again::everything || asked.again_part < 1)
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
                                   bool own_device) {
  const Homes now{asked.optimizer, asked.parameters, asked.activations};
  std::vector<Choices> all;
  if (asked.optimizer != kStay && asked.optimizer_part < 1) {
    Choices& changed = all.emplace_back(asked);
    changed.sharding.stage = highest_stage(asked, frame);
    changed.optimizer_part = 1;
  }
  for (const Homes& level : kLevels) {
    if (!is_further(level, now, own_device)) continue;
    Choices changed = asked;
    changed.sharding.stage = highest_stage(asked, frame);
    changed.optimizer = level[0];
    changed.optimizer_part = 1;
    changed.parameters = level[1];
    changed.activations = level[2];
    all.push_back(changed);
    set_everything_again(changed);
    set_micro_batch(changed, 1);
    all.push_back(changed);
    // Micro-steps of one layer after another: sums of gradients need not stay on the device.
    if (changed.micro_steps == 1 || changed.layer_major || frame.virtual_ranks > 0) continue;
    changed.layer_major = true;
    all.push_back(changed);
  }
  return all;
}

}  // namespace strata::plan
