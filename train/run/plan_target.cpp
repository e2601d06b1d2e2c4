#include "train/run/plan_target.h"

#include <algorithm>

#include "train/config/make_plan.h"
#include "train/config/option_fields.h"
#include "train/planning/lossy_choices.h"
#include "train/planning/planning_text.h"
#include "train/planning/refusal_text.h"

namespace strata::train {
namespace {

bool may_use_drive(const RunRequest& request) {
  const TrainOptions& options = request.config.options;
  const bool names_disk = options.target.offload == plan::Home::disk &&
                          request.config.origin_of("target.offload") != Origin::default_value;
  if (names_disk || choices_of(options).uses(plan::Home::disk)) return true;
  return request.hardware ? request.hardware->disk.bytes.known()
                          : !options.offload.nvme_paths.empty();
}

std::int64_t host_bytes_for(const RunRequest& request) {
  const bool is_limited = request.config.options.offload.host_memory_bytes != kUnlimitedMemory;
  if (!request.hardware && is_limited) return 0;  // --host-memory stands for another host
  return free_host_bytes(request);
}

ResolvedConfig config_of(const TrainOptions& options, const std::vector<std::string>& given) {
  ResolvedConfig config;
  config.options = options;
  for (const OptionField& field : option_fields(config.options)) {
    const bool is_given = std::ranges::find(given, field.name) != given.end();
    config.fields.push_back({std::string(field.name), text_of(field),
                             is_given ? Origin::command_line : Origin::default_value, ""});
  }
  return config;
}

}  // namespace

MemoryBudget target_budget(const RunRequest& request, const PlanningSite& site) {
  MachineFound found{.seat = site.seat,
                     .machine = site.machine,
                     .local_ranks = site.memory.local_world,
                     .has_drive = may_use_drive(request),
                     .host_bytes = host_bytes_for(request),
                     .is_here = !request.hardware,
                     .owner = site.machine.host_is_device() ? "a rank" : "the device",
                     .taken_by = "what driver and libraries hold"};
  if (request.hardware && request.hardware->disk.bytes.known())
    found.disk_bytes = request.hardware->disk.bytes.whole();
  else if (request.hardware && !found.has_drive)
    found.disk_bytes = 0;
  if (request.hardware && !site.machine.host_is_device()) {
    found.owner = request.hardware->name;
    found.device_bytes = request.hardware->device.memory_bytes.whole();
    found.device_taken_bytes = request.hardware->device.reserved_bytes.whole();
  }
  return budget_for(found, request.config.options);
}

PlannedTraining plan_run(const ModelConfig& model, const TrainOptions& options,
                         const machine::Machine& hardware, int ranks,
                         const std::vector<std::string>& given) {
  RunRequest request;
  request.model = model;
  request.config = config_of(options, given);
  request.hardware = hardware;
  assume_ranks(ranks, request);
  const MemoryBudget budget = target_budget(request, planning_site(request));
  PlannedTraining result{plan_allowed(programs_of(request), request.config, budget), options, "",
                         0};
  const auto& chosen = result.planned.answer.chosen;
  if (!chosen) {
    result.text = describe_refusal(result.planned, request.config, budget);
    return result;
  }
  set_planned(result.planned.changes, request.config);
  result.options = request.config.options;
  result.text = describe_planned(result.planned, request.config, budget);
  result.device_bytes =
      plan::scarce_bytes(chosen->needs, budget.machine) + budget.foreseen_beside_bytes;
  return result;
}

PlannedTraining plan_run(const ModelConfig& model, TrainOptions options,
                         const TargetOptions& budget, const machine::Machine& hardware) {
  options.target = budget;
  return plan_run(model, options, hardware, hardware.devices);
}

}  // namespace strata::train
