#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/freed_memory.h"
#include "core/program_main.h"
#include "machine/hardware_override.h"
#include "train/planning/memory_target.h"
#include "train/planning/planned_config.h"
#include "train/planning/planning_text.h"
#include "train/report/compare_reports.h"
#include "train/run/plan_only.h"
#include "train/run/plan_report.h"
#include "train/session/plan_command_line.h"
#include "train/session/plan_table.h"
#include "train/session/programs.h"
#include "train/session/settle_request.h"

namespace strata::train {
namespace {

/// The command line of `train` for one machine; it need not say how much memory to plan for.
ParsedCommandLine train_line(const PlanCommandLine& line, const std::string& hardware) {
  std::vector<std::string> words{"plan"};
  words.insert(words.end(), line.train.begin(), line.train.end());
  if (!hardware.empty()) words.insert(words.end(), {"--hardware", hardware});
  int world = line.world;  // known before settings are resolved: the batch depends on it
  if (world == 0 && line.hosts > 0)
    world = line.hosts * machine::load_overridden_hardware(hardware).devices;
  if (world > 0) words.insert(words.end(), {"--world-size", std::to_string(world)});
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return parse_train_command_line(static_cast<int>(arguments.size()), arguments.data());
}

/// What the target leaves for arenas of the machine of `request`.
MemoryBudget budget_of(const RunRequest& request, const PlanningSite& site) {
  const TrainOptions& options = request.config.options;
  MemoryBudget budget;
  budget.seat = site.seat;
  budget.machine = site.machine;
  budget.local_ranks = site.memory.local_world;
  budget.host_bytes = site.memory.host_bytes;
  const bool names_disk = options.target.offload == plan::Home::disk &&
                          request.config.origin_of("target.offload") != Origin::default_value;
  budget.has_drive = !options.offload.nvme_paths.empty() || names_disk ||
                     (request.hardware && request.hardware->disk.bytes.known());
  if (site.machine.host_is_device()) {
    budget.beside_bytes = kProcessBytes;
    const std::int64_t all = budget.host_bytes / budget.local_ranks;
    budget.host_bytes =
        budget.local_ranks * beside(target_bytes(options.target, all, "a rank"), kProcessBytes,
                                    options.target, "a process without any arena");
    return budget;
  }
  const std::int64_t limit = options.offload.device_memory_bytes;
  if (!request.hardware) {  // a device about which nothing else is known
    budget.device_bytes = options.target.memory.empty() || options.target.memory == "auto"
                              ? limit
                              : target_bytes(options.target, 0, "the device");
    return budget;
  }
  const std::int64_t whole = request.hardware->device.memory_bytes.whole();
  budget.beside_bytes = request.hardware->device.reserved_bytes.whole();
  budget.device_bytes = std::min(
      limit, beside(target_bytes(options.target, whole, request.hardware->name),
                    budget.beside_bytes, options.target, "what driver and libraries hold"));
  return budget;
}

RunRequest request_for(const PlanCommandLine& line, const std::string& hardware,
                       const RankContext& context, std::span<const ModelFamily> own) {
  const ParsedCommandLine train = train_line(line, hardware);
  RunRequest request = settle_request(train, context, own);
  if (line.hosts > 0) request.hardware->hosts = line.hosts;
  assume_ranks(ranks_of(train, request), request);
  return request;
}

PlannedMachine plan_for(const PlanCommandLine& line, const std::string& hardware,
                        const RankContext& context, std::span<const ModelFamily> own) {
  RunRequest request = request_for(line, hardware, context, own);
  const PlanningSite site = planning_site(request);
  PlannedMachine machine;
  machine.name = hardware.empty() ? "here" : hardware;
  machine.budget = budget_of(request, site);
  machine.asked = machine.config = request.config;
  machine.planned = plan_options(programs_of(request), request.config, machine.budget);
  if (!machine.planned.answer.chosen)
    machine.refusal = describe_refusal(machine.planned, request.config, machine.budget);
  else
    set_planned(machine.planned.changes, machine.config);
  return machine;
}

void print_findings(const PlannedMachine& machine) {
  for (const std::string& note : machine.config.notes)
    std::fprintf(stderr, "note: %s\n", note.c_str());
  for (const std::string& warning : machine.config.warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
}

void print_machine(const PlannedMachine& machine, bool explains) {
  const std::string text = machine.refusal.empty()
                               ? describe_planned(machine.planned, machine.config, machine.budget)
                               : machine.refusal;
  std::printf("%s: %s\n", machine.name.c_str(), text.c_str());
  if (machine.refusal.empty())
    if (const std::string wear = drive_wear_text(machine); !wear.empty())
      std::printf("%s\n", wear.c_str());
  if (explains)
    std::printf("\ncompared:\n%s",
                describe_attempts(machine.planned, machine.asked, machine.budget).c_str());
}

void write_files(const PlanCommandLine& line, const PlannedMachine& machine) {
  if (!machine.refusal.empty()) return;
  if (!line.config_to_write.empty())
    write_file_atomically(line.config_to_write, planned_config(machine.config.options));
  write_plan(machine.config.options, machine.planned.answer.chosen->plan);
}

int compare(std::span<char*> directories) {
  if (directories.size() != 2)
    throw InvalidArgument(
        fmt::format("compare needs two directories of --memory-report, that of a plan and that of "
                    "a run, and found {}: plan compare FORESEEN MEASURED",
                    directories.size()));
  const StoredReport foreseen = read_report(directories[0]);
  std::fputs(comparison_text(foreseen, read_report(directories[1])).c_str(), stdout);
  return 0;
}

int run(const PlanCommandLine& line, const RankContext& context, std::span<const ModelFamily> own) {
  std::vector<std::string> hardware = line.hardware;
  if (hardware.empty()) hardware.emplace_back();
  std::vector<PlannedMachine> machines;
  for (std::size_t i = 0; i < hardware.size(); ++i) {
    machines.push_back(plan_for(line, hardware[i], context, own));
    if (!line.prices.empty())
      machines.back().price_per_hour = line.prices[line.prices.size() == 1 ? 0 : i];
  }
  print_findings(machines.front());
  if (line.json) {
    std::fputs(plan_json(machines).c_str(), stdout);
  } else {
    for (const PlannedMachine& machine : machines) print_machine(machine, line.explains);
    std::printf("\n%s", plan_table(machines).c_str());
  }
  write_files(line, machines.front());
  const bool all_fit = std::ranges::all_of(
      machines, [](const PlannedMachine& machine) { return machine.refusal.empty(); });
  return all_fit ? 0 : 1;
}

}  // namespace

int plan_program(int argc, char** argv, std::span<const ModelFamily> own) {
  return program_main("plan", [&](const RankContext& context) {
    if (argc > 1 && std::string_view(argv[1]) == "compare")
      return compare({argv + 2, static_cast<std::size_t>(argc - 2)});
    const PlanCommandLine line = parse_plan_command_line(argc, argv);
    if (line.help) {
      std::fputs(plan_help().c_str(), stdout);
      return 0;
    }
    keep_freed_memory();
    return run(line, context, own);
  });
}

}  // namespace strata::train
