#include "train/run/memory_advice.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "comm/factory.h"
#include "core/error.h"
#include "kernels/cpu/cpu_stream.h"
#include "train/engine/memory_report.h"

namespace strata::train {
namespace {

constexpr std::int64_t kHighestStage = 3;
constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

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

/// `options` first, then what costs more time and mostly less memory, cheapest first. ZeRO moves
/// more bytes; small products run slower; recomputing norms reads and writes once more;
/// checkpointing computes the forward pass again.
std::vector<TrainOptions> cheapest_first(const TrainOptions& options, int world) {
  const std::int64_t highest = world > 1 ? kHighestStage : options.zero.stage;
  std::vector<TrainOptions> all;
  enum class Again : std::uint8_t { nothing, norms, everything };
  for (const Again again : {Again::nothing, Again::norms, Again::everything}) {
    if (options.activation_checkpointing && again != Again::everything) continue;
    if (options.recompute_norms && again == Again::nothing) continue;
    for (const std::int64_t micro_batch : smaller_micro_batches(options.micro_batch))
      for (std::int64_t stage = options.zero.stage; stage <= highest; ++stage) {
        TrainOptions& changed = all.emplace_back(options);
        changed.activation_checkpointing = again == Again::everything;
        changed.recompute_norms = again == Again::norms;
        changed.micro_batch = micro_batch;
        changed.accumulation = options.accumulation * (options.micro_batch / micro_batch);
        changed.zero.stage = stage;
      }
  }
  return all;
}

/// As the user would type it.
std::string flags_of(const TrainOptions& changed, const TrainOptions& original) {
  std::string flags;
  const auto add = [&flags](const std::string& flag) {
    flags += (flags.empty() ? "" : " ") + flag;
  };
  if (changed.zero.stage != original.zero.stage)
    add("--zero " + std::to_string(changed.zero.stage));
  if (changed.micro_batch != original.micro_batch)
    add("--micro-batch " + std::to_string(changed.micro_batch) + " --accumulation " +
        std::to_string(changed.accumulation));
  if (changed.recompute_norms && !original.recompute_norms) add("--recompute-norms");
  if (changed.activation_checkpointing != original.activation_checkpointing)
    add("--activation-checkpointing");
  return flags;
}

/// Arena bytes of one rank under changed options; kUnknown where those cannot be planned, because
/// they exceed --device-memory or --host-memory or because settings exclude each other.
class Planner {
 public:
  Planner(const ProgramRequest& request, const CrowdedHost& host)
      : request_(request),
        host_(host),
        communicators_(comm::make_thread_communicators(host.world)),
        device_(kernels::CpuDevice(host.threads).capabilities()) {}

  [[nodiscard]] std::int64_t arena_bytes(const TrainOptions& options) const {
    ProgramRequest changed = request_;
    changed.options = options;
    changed.local_ranks = host_.local_world;
    try {
      const ProgramSet set =
          build_programs(changed, *communicators_[static_cast<std::size_t>(host_.rank)], device_);
      for (const runtime::Tier tier : {runtime::Tier::device, runtime::Tier::pinned})
        if (set.arena_bytes(tier) > set.settings.plan.budget_bytes[static_cast<std::size_t>(tier)])
          return kUnknown;
      return set.arena_bytes(runtime::Tier::device);
    } catch (const Error&) {
      return kUnknown;
    }
  }

 private:
  const ProgramRequest& request_;
  const CrowdedHost& host_;
  std::vector<std::unique_ptr<comm::Communicator>> communicators_;  // nobody meets in them
  kernels::DeviceCapabilities device_;
};

std::string amount(std::int64_t arena_bytes, int ranks) {
  const std::string each = format_bytes(static_cast<double>(arena_bytes));
  if (ranks == 1) return "about " + each;
  return "about " + each + " per rank, " + format_bytes(static_cast<double>(arena_bytes * ranks)) +
         " on this host";
}

}  // namespace

std::string memory_advice(const ProgramRequest& request, const CrowdedHost& host,
                          std::int64_t free_bytes) {
  const Planner planner(request, host);
  const std::vector<TrainOptions> candidates = cheapest_first(request.options, host.world);
  const std::int64_t refused_bytes = planner.arena_bytes(candidates.front());
  const std::int64_t limit =
      std::min(free_bytes > 0 ? free_bytes / host.local_world : kUnknown, refused_bytes - 1);
  // The last ones, which differ in the stage alone, tell whether there is anything to look for.
  const TrainOptions* smallest = &candidates.front();
  std::int64_t least = refused_bytes;
  const std::int64_t stages = candidates.back().zero.stage - candidates.front().zero.stage + 1;
  for (auto last = candidates.end() - stages; last != candidates.end(); ++last) {
    const std::int64_t bytes = planner.arena_bytes(*last);
    if (bytes < least) smallest = &*last;
    least = std::min(least, bytes);
  }
  if (least <= limit)
    for (const TrainOptions& candidate : candidates) {
      const std::int64_t bytes = planner.arena_bytes(candidate);
      if (bytes <= limit)
        return flags_of(candidate, request.options) +
               " is the cheapest change that fits: it needs " + amount(bytes, host.local_world);
    }
  const std::string otherwise = std::string("use a shorter --sequence-length, a smaller model, ") +
                                (host.local_world > 1 ? "fewer ranks on this host, " : "") +
                                "or more hosts";
  if (least == kUnknown)
    return "no ZeRO stage, micro-batch or checkpointing fits these limits; raise --device-memory "
           "or "
           "--host-memory, " +
           otherwise;
  const std::string even = smallest == &candidates.front()
                               ? "no ZeRO stage, micro-batch or checkpointing needs less"
                               : "even " + flags_of(*smallest, request.options) + " needs " +
                                     amount(least, host.local_world);
  return even + "; " + otherwise;
}

}  // namespace strata::train
