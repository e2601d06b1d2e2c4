#include "train/engine/build_programs.h"

#include <fmt/core.h>
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/format_bytes.h"
#include "plan/compile_for_seat.h"
#include "train/config/check_options.h"
#include "train/config/make_plan.h"
#include "train/config/read_plan.h"
#include "train/engine/saved_state.h"

namespace strata::train {

std::vector<runtime::SaveMemory> savings_of(const TrainOptions& options) {
  using enum runtime::SaveMemory;
  if (options.output.empty()) return {none};
  const SaveInterval& every = options.checkpoint.every;
  const bool on_the_way = every.steps > 0 || every.seconds > 0;
  if (options.checkpoint.asynchronous && !options.check_device && on_the_way)
    return {snapshot, windows, writing};
  return {writing};
}

/// Computes the sizes once for all Plans with the same state: planners compile many that differ in
/// transient values alone, and what ranks save is a long list.
static compile::SaveRoomsFunction remembered_save_rooms() {
  struct Known {
    std::vector<runtime::UnitPlan> units;  // with names and sizes, which say what the model has
    comm::Mesh mesh;
    comm::MeshPoint at;
    std::int64_t tile_elements;
    compile::SaveRooms rooms;
  };
  struct Memory {
    std::mutex mutex;
    std::vector<Known> all;
  };
  const auto memory = std::make_shared<Memory>();
  return [memory](const std::vector<runtime::ParameterUnit>& units,
                  const step::StepSettings& settings) {
    const runtime::Plan& plan = settings.plan;
    const std::scoped_lock lock(memory->mutex);
    const auto found = std::ranges::find_if(memory->all, [&](const Known& known) {
      return known.units == plan.units && known.mesh == plan.mesh && known.at == settings.at &&
             known.tile_elements == plan.limits.tile_elements;
    });
    if (found != memory->all.end()) return found->rooms;
    const compile::SaveRooms rooms = save_rooms(units, settings);
    memory->all.push_back({plan.units, plan.mesh, settings.at, plan.limits.tile_elements, rooms});
    return rooms;
  };
}

compile::TrainingModel training_model(const ProgramRequest& request) {
  const TrainOptions& options = request.options;
  compile::TrainingModel model;
  model.build = [request](const BatchShape& shape, ModelUse use) {
    request.beat();  // a search builds one Graph or more for each Plan that it compiles
    BuiltModel built = build_model(request.model, shape, use);
    apply_weight_decay(built.graph.units, request.options);
    return built;
  };
  model.optimizer = optimizer_attributes(options);
  model.control = control_attributes(options);
  model.save_rooms = remembered_save_rooms();
  model.vocabulary = request.model.vocabulary;
  model.layers = static_cast<int>(request.model.layers);
  model.with_layers = [request](int layers) {
    ProgramRequest shorter = request;
    shorter.model.layers = layers;
    return training_model(shorter);
  };
  model.seed = options.seed;
  model.initial_loss_scale = initial_loss_scale(options);
  return model;
}

runtime::Plan requested_frame(const ProgramRequest& request, const machine::Machine& machine,
                              int world) {
  check_options(request.options, world);
  if (request.local_ranks < 1)
    throw InvalidArgument(
        fmt::format("ProgramRequest::local_ranks is {}, expected the ranks of this machine",
                    request.local_ranks));
  runtime::Plan plan = plan_frame(request.options, world);
  plan.backend = machine.device.capabilities.backend;
  plan.evaluates = request.evaluate;
  plan.saving = request.saving;
  plan.scheduled = request.scheduled;
  plan.shorter_sequences = request.shorter_sequences;
  if (request.options.offload.host_memory_bytes != kUnlimitedMemory)
    plan.host_bytes = request.options.offload.host_memory_bytes / request.local_ranks;
  return plan;
}

runtime::Plan requested_plan(const ProgramRequest& request, const compile::TrainingModel& model,
                             const machine::Machine& machine, int world) {
  return plan::with_choices(requested_frame(request, machine, world), choices_of(request.options),
                            model.build);
}

/// Names what limits host memory: the flag, or the target for which a planner has set it.
static std::string host_limit(const ProgramRequest& request) {
  const std::string& target = request.options.target.memory;
  return target.empty() ? "--host-memory" : "the plan for --target-memory " + target;
}

/// Says how large --host-memory must be: pinned memory gets what pageable memory leaves of it.
static std::string least_host_memory(const compile::Fit& fit, const ProgramRequest& request) {
  if (!fit.shortage || fit.shortage->tier != runtime::Tier::pinned ||
      !request.options.target.memory.empty() ||
      request.options.offload.host_memory_bytes == kUnlimitedMemory)
    return "";
  const std::int64_t each =
      fit.shortage->floor_bytes +
      fit.shortage->kept_bytes[static_cast<std::size_t>(runtime::Tier::pageable)];
  return fmt::format(
      "; of --host-memory each of {} ranks has an equal part, so that it must be at least {}",
      request.local_ranks, each * request.local_ranks);
}

/// The message where the host is the device and its memory is too small.
static std::string describe_host(const compile::TierFit& host, const ProgramRequest& request) {
  const int ranks = request.local_ranks;
  std::string needs = format_bytes(host.needed_bytes);
  if (ranks > 1)
    needs +=
        fmt::format(" per rank, {} on this host in all", format_bytes(host.needed_bytes * ranks));
  return fmt::format("out of memory: this plan needs {}, and {} are what {} allows", needs,
                     format_bytes(host.budget_bytes * ranks), host_limit(request));
}

std::string lacking_memory(const compile::Fit& fit, const ProgramRequest& request) {
  if (fit.fits()) return "";
  if (!fit.host.fits()) return describe_host(fit.host, request);
  if (!fit.kept_too_much) return describe(fit) + least_host_memory(fit, request);
  const compile::KeptTooMuch& kept = *fit.kept_too_much;
  const OffloadOptions& options = request.options.offload;
  const bool more = options.optimizer != plan::Home::disk || options.parameters != plan::Home::disk;
  return fmt::format(
      "out of host memory: each of {} ranks may use {} bytes of what {} allows, and keeps {} of "
      "state and inputs there{}, before anything is transferred; raise the budget{}",
      request.local_ranks, kept.budget_bytes, host_limit(request), kept.state_bytes,
      kept.saving_bytes > 0 ? fmt::format(" and {} for saving", kept.saving_bytes) : "",
      more ? ", or move more to the disk (--offload-optimizer nvme, --offload-param nvme)" : "");
}

void require_fit(const compile::Fit& fit, const ProgramRequest& request) {
  if (const std::string lacking = lacking_memory(fit, request); !lacking.empty())
    throw OutOfMemory(lacking);
}

/// Throws if a limit of the file, not of an option, is too small. `given`: the file's Plan;
/// `asked`: the Plan that the options ask for.
static void require_own_limits(const std::string& file, const runtime::Plan& given,
                               const runtime::Plan& asked, const compile::Fit& fit) {
  const auto require = [&](const std::string& field, std::int64_t has, std::int64_t options_give,
                           std::int64_t needed) {
    if (has >= options_give || has >= needed) return;
    throw OutOfMemory(fmt::format("{}: {}: the Plan has {} bytes, and needs at least {}; raise it",
                                  file, field, has, needed));
  };
  runtime::TierBytes needed{};
  for (std::size_t t = 0; t < needed.size(); ++t) needed[t] = fit.tiers[t].needed_bytes;
  std::int64_t host = fit.host.fits() ? 0 : fit.host.needed_bytes;
  if (const auto& kept = fit.kept_too_much) host = kept->state_bytes + kept->saving_bytes;
  if (fit.shortage && fit.shortage->tier == runtime::Tier::pinned)
    host = fit.shortage->floor_bytes +
           fit.shortage->kept_bytes[static_cast<std::size_t>(runtime::Tier::pageable)];
  for (const runtime::Tier tier : runtime::kAllTiers) {
    const auto t = static_cast<std::size_t>(tier);
    require(fmt::format("budget_bytes.{}", name_of(tier)), given.budget_bytes[t],
            asked.budget_bytes[t], needed[t]);
  }
  require("host_bytes", given.host_bytes, asked.host_bytes, host);
}

compile::Compiled plan_programs(const ProgramRequest& request, const comm::Seat& seat,
                                const machine::Machine& machine,
                                const std::vector<runtime::SaveMemory>& savings,
                                const plan::Accepts& accepts) {
  const compile::TrainingModel model = training_model(request);
  const runtime::Plan asked = requested_plan(request, model, machine, seat.ranks);
  const comm::MeshSeat where = comm::MeshSeat::of(seat, asked.mesh);
  if (const std::string& file = request.options.plan; !file.empty()) {
    const runtime::Plan given =
        read_plan(file, asked, savings, !request.options.offload.nvme_paths.empty());
    try {
      compile::Compiled found =
          plan::compile_for_seat(model, given, asked, machine, where, compile::Effort::full);
      if (!found.fit.fits()) require_own_limits(file, given, asked, found.fit);
      return found;
    } catch (const InvalidArgument& error) {
      throw ConfigError(fmt::format("{}: {}", file, error.what()));
    }
  }
  return plan::find_plan({.model = model,
                          .plan = asked,
                          .machine = machine,
                          .where = where,
                          .savings = savings,
                          .accepts = accepts,
                          .save_every_steps = request.options.checkpoint.every.steps,
                          .save_every_seconds = request.options.checkpoint.every.seconds});
}

compile::StepPrograms build_programs(const ProgramRequest& request, const comm::Seat& seat,
                                     const machine::Machine& machine) {
  compile::Compiled found = plan_programs(request, seat, machine, {request.saving});
  require_fit(found.fit, request);
  return std::move(found.programs);
}

compile::StepPrograms build_generation(const ModelConfig& model, const BatchShape& shape,
                                       const comm::Seat& seat, const machine::Machine& machine) {
  const auto build = [&](const BatchShape& wanted, ModelUse use) {
    return build_model(model, wanted, use);
  };
  return compile::compile_generation(build, shape, model.vocabulary, machine,
                                     comm::MeshSeat::of(seat));
}

}  // namespace strata::train
