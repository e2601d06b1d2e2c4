#include "train/run/memory_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/nearest_plan.h"
#include "plan/reasons.h"
#include "train/config/make_plan.h"
#include "train/planning/reasons_text.h"

namespace strata::train {
namespace {

/// plan::find_nearest takes 5 to 15 seconds of a processor for it.
constexpr std::int64_t kMostWork = 1'000'000;

using Flags = std::vector<std::string>;

/// The changes as flags that the user would type.
Flags flags_of(const plan::Nearest& found, const TrainOptions& options) {
  using enum plan::Home;
  const plan::Choices &then = found.choices, now = choices_of(options);
  Flags flags;
  if (then.sharding.stage != now.sharding.stage)
    flags.push_back(fmt::format("--zero {}", then.sharding.stage));
  if (then.micro_batch != now.micro_batch)
    flags.push_back(
        fmt::format("--micro-batch {} --accumulation {}", then.micro_batch, then.micro_steps));
  if (then.again != now.again)
    flags.emplace_back(then.again == plan::Again::norms ? "--recompute-norms"
                                                        : "--activation-checkpointing");
  if (then.again_part != now.again_part)
    flags.push_back(fmt::format("--checkpoint-ratio {}", then.again_part));
  if (then.layer_major != now.layer_major) flags.emplace_back("--layer-major");
  if (then.sums_away != now.sums_away) flags.emplace_back("--offload-gradients");
  const auto move = [&](const char* flag, plan::Home home, plan::Home before) {
    if (home != before) flags.push_back(std::string(flag) + (home == host ? "cpu" : "nvme"));
  };
  move("--offload-optimizer ", then.optimizer, now.optimizer);
  if (then.optimizer_part != now.optimizer_part)
    flags.push_back(fmt::format("--offload-ratio {}", then.optimizer_part));
  move("--offload-param ", then.parameters, now.parameters);
  move("--offload-activations ", then.activations, now.activations);
  const auto limit = [&](const char* flag, const std::optional<std::int64_t>& bytes) {
    if (bytes) flags.push_back(flag + byte_size_text(*bytes));
  };
  limit("--device-memory ", found.limits.device_bytes);
  limit("--host-memory ", found.limits.host_bytes);
  const bool on_disk =
      then.optimizer == disk || then.parameters == disk || then.activations == disk;
  if (on_disk && options.offload.nvme_paths.empty()) flags.emplace_back("--nvme-path DIR");
  return flags;
}

std::string say(const plan::NearestSearch& search, const TrainOptions& options,
                const MachineMemory& memory) {
  const std::optional<plan::Nearest>& found = search.found;
  const std::string otherwise =
      fmt::format("use a shorter --sequence-length{} or a smaller model",
                  memory.local_world > 1 ? ", fewer ranks on this host" : "");
  if (!search.complete && (!found || found->nearness == plan::Nearness::smallest))
    return "no change that fits was found in a short search; " + otherwise;
  const std::string limit = allowed_homes_flag(options.target.offload);
  const std::string no_change =
      fmt::format("no ZeRO stage, micro-batch, checkpointing or offload{}{}",
                  limit.empty() ? "" : " within ", limit);
  if (!found)
    return no_change + " fits these limits; raise --device-memory or --host-memory, " + otherwise;
  const std::string needs = describe(found->needs, memory);
  const Flags flags = flags_of(*found, options);
  const bool fits = found->nearness != plan::Nearness::smallest;
  if (flags.empty() && fits) return "it needs about " + needs + " without";
  if (flags.empty()) return no_change + " needs less; " + otherwise;
  const std::string change = fmt::format("{}", fmt::join(flags, " "));
  if (found->nearness == plan::Nearness::unplanned)
    return change + " fits: it needs at least " + needs;
  if (!fits) return fmt::format("even {} needs at least {}; {}", change, needs, otherwise);
  return change +
         (found->nearness == plan::Nearness::cheapest ? " is the cheapest change that fits: "
                                                      : " fits: ") +
         "it needs about " + needs;
}

/// What a rank may take of the memory that is there, within the limits of the frame.
plan::MemoryLimits limits_of(const runtime::Plan& frame, const MachineMemory& memory) {
  plan::MemoryLimits limits{
      .device_bytes = frame.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)],
      .host_bytes = frame.host_bytes};
  if (memory.device_bytes)
    limits.device_bytes = std::min(limits.device_bytes, *memory.device_bytes);
  if (memory.host_bytes > 0)
    limits.host_bytes = std::min(limits.host_bytes, memory.host_bytes / memory.local_world);
  return limits;
}

std::string single_changes(const plan::Search& search, const TrainOptions& options,
                           const MachineMemory& memory) {
  const plan::Choices asked = choices_of(options);
  plan::StepEstimates estimates(search, asked);
  plan::PriceList prices(estimates, search, limits_of(search.plan, memory));
  return changes_text(prices.single_changes(asked, options.target.offload), options,
                      search.machine);
}

}  // namespace

std::string memory_advice(const ProgramRequest& request, const CrowdedMachine& machine) {
  ProgramRequest asked = request;
  asked.local_ranks = machine.memory.local_world;
  const compile::TrainingModel model = training_model(asked);
  const plan::Search search{.model = model,
                            .plan = requested_frame(asked, machine.machine, machine.seat.ranks),
                            .machine = machine.machine,
                            .where = comm::MeshSeat::of(machine.seat),
                            .savings = savings_of(asked.options),
                            .save_every_steps = asked.options.checkpoint.every.steps,
                            .save_every_seconds = asked.options.checkpoint.every.seconds};
  const auto found = plan::find_nearest(search,
                                        {.asked = choices_of(asked.options),
                                         .memory = machine.memory,
                                         .refused = asked.options.plan.empty(),
                                         .farthest = asked.options.target.offload},
                                        kMostWork);
  return (request.options.plan.empty() ? "" : "print another Plan, or leave out --plan: ") +
         say(found, asked.options, machine.memory) +
         (machine.device.empty() ? "" : " (device: " + machine.device + ")") +
         single_changes(search, asked.options, machine.memory);
}

}  // namespace strata::train
