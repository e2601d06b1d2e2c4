#include "train/run/publish_worlds.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <string>

#include "core/error.h"
#include "core/shared_values.h"

namespace strata::train {
namespace {

/// No run has more ranks.
constexpr int kMostRanks = 65'536;

}  // namespace

std::vector<int> worlds_for(std::int64_t global_batch, const MicroBatchIn& micro_batch_in) {
  std::vector<int> worlds;
  const auto most = static_cast<int>(std::min<std::int64_t>(global_batch, kMostRanks));
  for (int world = 1; world <= most; ++world) {
    if (global_batch % world != 0) continue;
    const auto micro_batch = micro_batch_in(world);
    if (micro_batch && global_batch / world % *micro_batch == 0) worlds.push_back(world);
  }
  return worlds;
}

void publish_worlds(const RankContext& context, const std::vector<int>& worlds, bool may_grow) {
  context.store->put(kWorldsKey,
                     fmt::format("{}{}", may_grow ? "" : "keep ", fmt::join(worlds, " ")));
}

void await_worlds(const RankContext& context) {
  try {
    (void)context.store->get(kWorldsKey, std::chrono::seconds(10));
  } catch (const Error&) {
    // Another rank has failed, or rank 0 is slow: the error of this rank says more.
  }
}

}  // namespace strata::train
