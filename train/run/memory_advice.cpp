#include "train/run/memory_advice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"

namespace strata::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kHighestStage = 3;
constexpr std::chrono::seconds kLongestSearch{8};

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

void set_micro_batch(TrainOptions& options, std::int64_t micro_batch) {
  options.accumulation *= options.micro_batch / micro_batch;
  options.micro_batch = micro_batch;
}

std::int64_t highest_stage(const TrainOptions& options, int world) {
  return world > 1 ? kHighestStage : options.zero.stage;
}

/// `options` first, then what costs more time and mostly less memory, cheapest first. ZeRO moves
/// more bytes; small products run slower; recomputing norms reads and writes once more;
/// checkpointing computes the forward pass again.
std::vector<TrainOptions> cheapest_first(const TrainOptions& options, int world) {
  const std::int64_t highest = highest_stage(options, world);
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
        set_micro_batch(changed, micro_batch);
        changed.zero.stage = stage;
      }
  }
  return all;
}

/// Where optimizer state, parameters and activations live; each leaves less on the device, or in
/// host memory, than those before it.
using Tiers = std::array<OffloadTarget, 3>;
constexpr OffloadTarget kStay = OffloadTarget::none, kCpu = OffloadTarget::cpu,
                        kNvme = OffloadTarget::nvme;
constexpr std::array<Tiers, 6> kTierLevels{{{kCpu, kStay, kStay},
                                            {kCpu, kCpu, kStay},
                                            {kNvme, kStay, kStay},
                                            {kNvme, kCpu, kStay},
                                            {kNvme, kNvme, kStay},
                                            {kNvme, kNvme, kNvme}}};

Tiers tiers_of(const OffloadOptions& offload) {
  return {offload.optimizer, offload.parameters, offload.activations};
}

/// Levels that move something more, and the one of `now` where it has something on the disk: within
/// a limit more goes there. Host memory gains a CPU nothing that plays the device in it.
bool is_further(const Tiers& level, const Tiers& now, bool own_device) {
  const auto uses_host_memory = [](OffloadTarget target) { return target == kCpu; };
  if (!own_device && std::ranges::any_of(level, uses_host_memory)) return false;
  for (std::size_t i = 0; i < level.size(); ++i)
    if (level[i] < now[i]) return false;
  return level != now || std::ranges::find(now, kNvme) != now.end();
}

/// Each level with all else as it was asked for, then with the least activations.
std::vector<TrainOptions> further_tiers(const TrainOptions& options, int world, bool own_device) {
  std::vector<TrainOptions> all;
  for (const Tiers& level : kTierLevels) {
    if (!is_further(level, tiers_of(options.offload), own_device)) continue;
    TrainOptions changed = options;
    changed.zero.stage = highest_stage(options, world);
    changed.offload.optimizer = level[0];
    changed.offload.parameters = level[1];
    changed.offload.activations = level[2];
    all.push_back(changed);
    changed.activation_checkpointing = true;
    changed.recompute_norms = false;
    set_micro_batch(changed, 1);
    all.push_back(changed);
    // Micro-steps of one layer after another: sums of gradients need not stay on the device.
    if (changed.accumulation == 1 || changed.offload.layer_major || changed.virtual_ranks > 0)
      continue;
    changed.offload.layer_major = true;
    all.push_back(changed);
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
  if (changed.offload.layer_major && !original.offload.layer_major) add("--layer-major");
  const Tiers now = tiers_of(original.offload), then = tiers_of(changed.offload);
  constexpr std::array kFlags{"--offload-optimizer ", "--offload-param ", "--offload-activations "};
  for (std::size_t i = 0; i < kFlags.size(); ++i)
    if (then[i] != now[i]) add(kFlags[i] + std::string(then[i] == kCpu ? "cpu" : "nvme"));
  if (changed.offload.device_memory_bytes != original.offload.device_memory_bytes)
    add("--device-memory " + byte_size_text(changed.offload.device_memory_bytes));
  if (changed.offload.host_memory_bytes != original.offload.host_memory_bytes)
    add("--host-memory " + byte_size_text(changed.offload.host_memory_bytes));
  if (original.offload.nvme_paths.empty() && std::ranges::find(then, kNvme) != then.end())
    add("--nvme-path DIR");
  return flags;
}

class Search {
 public:
  Search(const ProgramRequest& request, const CrowdedMachine& machine)
      : request_(request), machine_(machine), refused_(needs(request.options)) {}

  std::string run() {
    const TrainOptions& options = request_.options;
    const std::vector<TrainOptions> here =
        within_limits(cheapest_first(options, machine_.seat.ranks), options.offload.moves_state());
    // The last ones, which differ in the stage alone, tell whether there is anything to look for.
    const std::int64_t stages = here.back().zero.stage - here.front().zero.stage + 1;
    if (auto last = first_that_fits({here.end() - stages, here.end()})) {
      auto first = first_that_fits(here);
      return first ? said(*first, "is the cheapest change that fits: it needs ")
                   : said(*last, "fits: it needs ");
    }
    if (auto first = first_that_fits(within_limits(
            further_tiers(options, machine_.seat.ranks, machine_.memory.device_bytes.has_value()),
            true)))
      return said(*first, "is the cheapest change that fits: it needs ");
    return nothing_fits();
  }

 private:
  struct Found {
    TrainOptions options;
    MemoryNeeds needs;
  };

  /// Nothing where that cannot be planned, because it exceeds --device-memory or --host-memory or
  /// because settings exclude each other.
  [[nodiscard]] std::optional<MemoryNeeds> needs(const TrainOptions& options) const {
    ProgramRequest changed = request_;
    changed.options = options;
    changed.options.plan.clear();  // another one is looked for
    changed.local_ranks = machine_.memory.local_world;
    // Schedules take as much memory as they may have; what they need at least is known sooner.
    changed.scheduled = !options.offload.moves_state();
    try {
      const compile::Compiled found =
          plan_programs(changed, machine_.seat, machine_.machine, {changed.saving});
      if (!found.fit.fits()) return {};
      return memory_needs(found.programs);
    } catch (const InvalidArgument&) {
      return {};  // settings exclude each other
    }
  }

  [[nodiscard]] bool fits(const TrainOptions& options, const MemoryNeeds& needs) const {
    const MachineMemory& memory = machine_.memory;
    // What was refused does not fit, whatever is said to be free, unless a limit is new.
    const bool less =
        !refused_ ||
        options.offload.host_memory_bytes != request_.options.offload.host_memory_bytes ||
        needs.device < refused_->device || memory.host_share(needs) < memory.host_share(*refused_);
    return less && memory.holds(needs);
  }

  std::optional<Found> first_that_fits(const std::vector<TrainOptions>& candidates) {
    for (const TrainOptions& candidate : candidates) {
      if (Clock::now() > end_) return {};
      const std::optional<MemoryNeeds> needed = needs(candidate);
      if (!needed) continue;
      if (fits(candidate, *needed)) return Found{candidate, *needed};
      if (!least_ || size(*needed) < size(least_->needs)) least_ = Found{candidate, *needed};
    }
    return {};
  }

  [[nodiscard]] bool limits_host_memory() const {
    return machine_.memory.host_bytes > 0 &&
           request_.options.offload.host_memory_bytes == kUnlimitedMemory;
  }

  /// Transfers would take all memory otherwise that makes a step faster.
  [[nodiscard]] std::vector<TrainOptions> within_limits(std::vector<TrainOptions> candidates,
                                                        bool transfers) const {
    if (transfers && limits_host_memory())
      for (TrainOptions& changed : candidates)
        changed.offload.host_memory_bytes = machine_.memory.host_bytes;
    return candidates;
  }

  /// Limits as a user would type them.
  void set_limits(Found& found) const {
    if (!found.options.offload.moves_state()) return;
    constexpr std::int64_t kUnit = std::int64_t{1} << 20;
    const MachineMemory& memory = machine_.memory;
    OffloadOptions& offload = found.options.offload;
    if (memory.device_bytes && offload.device_memory_bytes == kUnlimitedMemory)
      offload.device_memory_bytes = *memory.device_bytes / kUnit * kUnit;
    if (!limits_host_memory()) return;
    const std::int64_t arenas = memory.device_bytes ? 0 : found.needs.device * memory.local_world;
    offload.host_memory_bytes = (memory.host_bytes - arenas) / kUnit * kUnit;
  }

  /// Of the memory that is scarcer.
  [[nodiscard]] std::int64_t size(const MemoryNeeds& needs) const {
    return machine_.memory.device_bytes ? needs.device : machine_.memory.host_share(needs);
  }

  [[nodiscard]] std::string said(Found found, const std::string& verb) const {
    set_limits(found);
    return flags_of(found.options, request_.options) + " " + verb + "about " +
           describe(found.needs, machine_.memory);
  }

  [[nodiscard]] std::string nothing_fits() const {
    const std::string otherwise =
        std::string("use a shorter --sequence-length") +
        (machine_.memory.local_world > 1 ? ", fewer ranks on this host" : "") +
        " or a smaller model";
    if (!least_)
      return "no ZeRO stage, micro-batch, checkpointing or offload fits these limits; raise "
             "--device-memory or --host-memory, " +
             otherwise;
    const std::string flags = flags_of(least_->options, request_.options);
    if (flags.empty())
      return "no ZeRO stage, micro-batch, checkpointing or offload needs less; " + otherwise;
    return "even " + said(*least_, "needs ") + "; " + otherwise;
  }

  const ProgramRequest& request_;
  const CrowdedMachine& machine_;
  std::optional<MemoryNeeds> refused_;  ///< by the options as they are; nothing: cannot be planned
  std::optional<Found> least_;          ///< that was tried
  Clock::time_point end_ = Clock::now() + kLongestSearch;
};

}  // namespace

std::string memory_advice(const ProgramRequest& request, const CrowdedMachine& machine) {
  ProgramRequest asked = request;
  if (asked.saving == runtime::SaveMemory::none && !asked.options.output.empty())
    asked.saving = runtime::SaveMemory::writing;
  return (request.options.plan.empty() ? "" : "print another Plan, or leave out --plan: ") +
         Search(asked, machine).run();
}

}  // namespace strata::train
