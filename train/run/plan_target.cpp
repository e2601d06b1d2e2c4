#include "train/run/plan_target.h"

#include <algorithm>

#include "train/config/option_fields.h"
#include "train/planning/memory_target.h"
#include "train/planning/planning_text.h"

namespace strata::train {
namespace {

/// The part of a described host's memory that is planned with.
constexpr double kHostPart = 0.95;

bool may_use_drive(const RunRequest& request) {
  const TrainOptions& options = request.config.options;
  const bool names_disk = options.target.offload == plan::Home::disk &&
                          request.config.origin_of("target.offload") != Origin::default_value;
  return !options.offload.nvme_paths.empty() || names_disk ||
         (request.hardware && request.hardware->disk.bytes.known());
}

std::int64_t host_bytes_for(const RunRequest& request, const PlanningSite& site) {
  const std::int64_t limit = request.config.options.offload.host_memory_bytes;
  if (!request.hardware || site.memory.host_bytes == 0) return site.memory.host_bytes;
  if (limit != kUnlimitedMemory) return std::min(limit, site.memory.host_bytes);
  return static_cast<std::int64_t>(kHostPart * static_cast<double>(site.memory.host_bytes));
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
  const TrainOptions& options = request.config.options;
  MemoryBudget budget;
  budget.seat = site.seat;
  budget.machine = site.machine;
  budget.local_ranks = site.memory.local_world;
  budget.has_drive = may_use_drive(request);
  if (request.hardware && request.hardware->disk.bytes.known())
    budget.disk_bytes = request.hardware->disk.bytes.whole();
  if (site.machine.host_is_device()) {
    budget.beside_bytes = process_bytes(options);
    const std::int64_t all = site.memory.host_bytes / budget.local_ranks;
    budget.most_bytes = all;
    budget.host_bytes = budget.local_ranks * beside(target_bytes(options.target, all, "a rank"),
                                                    budget.beside_bytes, options.target,
                                                    "a process without any arena");
    return budget;
  }
  budget.host_bytes = host_bytes_for(request, site);
  const std::int64_t limit = options.offload.device_memory_bytes;
  if (!request.hardware) {  // a device about which nothing else is known
    budget.device_bytes = options.target.memory.empty() || options.target.memory == "auto"
                              ? limit
                              : target_bytes(options.target, 0, "the device");
    return budget;
  }
  const std::int64_t whole = request.hardware->device.memory_bytes.whole();
  budget.most_bytes = whole;
  budget.beside_bytes = request.hardware->device.reserved_bytes.whole();
  budget.device_bytes = std::min(
      limit, beside(target_bytes(options.target, whole, request.hardware->name),
                    budget.beside_bytes, options.target, "what driver and libraries hold"));
  return budget;
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
  PlannedTraining result{plan_options(programs_of(request), request.config, budget), options, "",
                         0};
  const auto& chosen = result.planned.answer.chosen;
  if (!chosen) {
    result.text = describe_refusal(result.planned, request.config, budget);
    return result;
  }
  set_planned(result.planned.changes, request.config);
  result.options = request.config.options;
  result.text = describe_planned(result.planned, request.config, budget);
  result.device_bytes = plan::scarce_bytes(chosen->needs, budget.machine) + budget.beside_bytes;
  return result;
}

}  // namespace strata::train
