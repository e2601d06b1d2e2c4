#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_size.h"
#include "core/error.h"
#include "core/format_bytes.h"
#include "core/freed_memory.h"
#include "core/new_folders.h"
#include "core/program_main.h"
#include "core/standard_output.h"
#include "core/version.h"
#include "plan/disk_writes.h"
#include "plan/foresee.h"
#include "plan/memory_needs.h"
#include "train/config/make_plan.h"
#include "train/config/read_plan.h"
#include "train/planning/refusal_text.h"
#include "train/report/report_directory.h"
#include "train/run/kept_inputs.h"
#include "train/run/plan_only.h"
#include "train/run/plan_target.h"
#include "train/run/plan_with_progress.h"
#include "train/run/planning_site.h"
#include "train/run/writable.h"
#include "train/session/compare_command.h"
#include "train/session/machine_text.h"
#include "train/session/plan_command_line.h"
#include "train/session/plan_files.h"
#include "train/session/plan_rows.h"
#include "train/session/plan_table.h"
#include "train/session/planning_line.h"
#include "train/session/programs.h"

namespace strata::train {
namespace {

/// Notes that what is planned saves otherwise than the Plan of the file, and so needs other bytes
/// than a run would for which the file was written.
void note_other_saving(const TrainOptions& options, const runtime::Plan& planned,
                       std::vector<std::string>& notes) {
  const runtime::SaveMemory stored = stored_plan(options.plan).saving;
  if (stored == planned.saving) return;
  const bool has_snapshots = runtime::takes_snapshots(stored);
  notes.push_back(fmt::format(
      "{}: the Plan has memory for saving (\"{}\"), and with these flags \"{}\" is planned; to "
      "count that memory, give plan {}, as the run",
      options.plan, name_of(stored), name_of(planned.saving),
      has_snapshots && !options.output.empty() ? "--save-every N"
      : has_snapshots                          ? "--output DIR --save-every N"
                                               : "--output DIR"));
}

/// Compiles the Plan of --plan as it is, which leaves nothing to choose.
void take_given_plan(const RunRequest& request, const PlanningSite& site, PlannedMachine& machine) {
  const FoundPlan found = find_plan(request, site);
  machine.refusal = found.lacking;
  if (!machine.refusal.empty()) return;
  const compile::StepPrograms& set = found.compiled.programs;
  const TrainOptions& options = request.config.options;
  note_other_saving(options, set.settings.plan, machine.config.notes);
  machine.planned.answer.is_asked = true;
  machine.planned.answer.chosen =
      plan::PlannedStep{.needs = plan::memory_needs(set),
                        .forecast = plan::foresee(set, site.machine, between_steps(options)),
                        .plan = set.settings.plan,
                        .disk_written_bytes = plan::bytes_written_per_step(set)};
}

/// Notes flags that the machine of --hardware cannot obey.
void note_machine(const RunRequest& request, PlannedMachine& machine) {
  if (!request.hardware) return;
  const OffloadOptions& offload = request.config.options.offload;
  if (!offload.nvme_paths.empty() && !machine.budget.has_drive)
    machine.config.notes.push_back("--nvme-path: accepted, unused: " + request.hardware->name +
                                   " of --hardware has no drive");
  const std::int64_t most = machine.budget.most_host_bytes;
  if (offload.host_memory_bytes != kUnlimitedMemory && most > 0 && offload.host_memory_bytes > most)
    machine.config.notes.push_back(fmt::format(
        "--host-memory {}: the host of {} has {}, which is what is planned for",
        byte_size_text(offload.host_memory_bytes), request.hardware->name, format_bytes(most)));
}

/// Plans with a line of progress on standard error, where no answer stands.
PlannedRun planned_with_progress(const RunRequest& request, const MemoryBudget& budget) {
  ConsoleStreams streams = console_streams(request.context);
  streams.output = streams.error;
  streams.output_is_terminal = streams.error_is_terminal;
  Console console(std::move(streams));
  PlanningLine line(console);
  return plan_with_progress(
      programs_of(request), request.config, budget,
      [&](const auto& progress) { progress ? line.show(*progress) : line.finish(); });
}

/// `is_one_of_several`: a target that is more than this machine has refuses its line alone.
PlannedMachine plan_for(const RunRequest& request, const std::string& name,
                        bool is_one_of_several) {
  const PlanningSite site = planning_site(request);
  PlannedMachine machine;
  machine.name = name;
  machine.machine = request.hardware ? *request.hardware : site.machine;
  machine.asked = machine.config = request.config;
  try {
    machine.budget = target_budget(request, site);
  } catch (const ConfigError& error) {
    if (!is_one_of_several) throw;
    machine.refusal = error.what();
    machine.budget.seat = site.seat;
    machine.budget.local_ranks = site.memory.local_world;
    return machine;
  }
  note_machine(request, machine);
  if (!request.config.options.plan.empty()) {
    take_given_plan(request, site, machine);
    return machine;
  }
  machine.planned = planned_with_progress(request, machine.budget);
  if (!machine.planned.answer.chosen)
    machine.refusal = describe_refusal(machine.planned, request.config, machine.budget);
  else
    set_planned(machine.planned.changes, machine.config);
  return machine;
}

/// Prints what was found of settings and machines, each line once.
void print_findings(const std::vector<PlannedMachine>& machines) {
  std::set<std::string> printed;
  const auto print = [&](const char* kind, const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      if (printed.insert(kind + line).second) std::fprintf(stderr, "%s: %s\n", kind, line.c_str());
  };
  for (const PlannedMachine& machine : machines) {
    print("note", machine.config.notes);
    print("warning", machine.config.warnings);
  }
}

/// Refuses flags that are about what a planner chose, if a Plan leaves nothing to choose.
void require_choices(const PlanCommandLine& line, const TrainOptions& options) {
  if (options.plan.empty() || (line.config_to_write.empty() && !line.explains)) return;
  throw InvalidArgument(fmt::format(
      "--plan {} decides, and nothing is chosen for {}; leave out one of the two", options.plan,
      line.explains ? "--explain to compare" : "--write-config to write"));
}

/// Says which model is planned where none was named: the smallest one would seem to fit anything.
void note_model(const ResolvedConfig& config) {
  if (config.origin_of("model") == Origin::default_value)
    std::fprintf(stderr, "note: no --model is given; this is a plan of %s\n",
                 config.options.model.c_str());
}

int run(const PlanCommandLine& line, const RankContext& context, std::span<const ModelFamily> own,
        StandardOutput& output) {
  const std::vector<PlanRow> rows = planned_rows(line);
  std::vector<RunRequest> requests;  // all of them first, so that a wrong name costs no planning
  for (const PlanRow& row : rows) requests.push_back(request_of_row(line, row, context, own));
  const TrainOptions& options = requests.front().config.options;
  if (rows.size() > 1 && !(options.memory_report.empty() && options.write_plan.empty()))
    throw InvalidArgument(
        "--memory-report and --write-plan write one plan; name one machine and one target");
  require_choices(line, options);
  for (const RunRequest& request : requests)
    keep_inputs(request, {{"--write-config", line.config_to_write}});
  NewFolders folders;
  require_report_directory(options.memory_report, folders);
  require_writable_file(line.config_to_write, "--write-config");
  require_writable_file(options.write_plan, "--write-plan");
  note_model(requests.front().config);
  std::vector<PlannedMachine> machines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string name = rows[i].hardware.empty() ? "here" : rows[i].hardware;
    machines.push_back(plan_for(requests[i],
                                line.targets.size() > 1 ? name + " " + rows[i].target : name,
                                rows.size() > 1));
    if (!line.prices.empty()) machines.back().price_per_hour = line.prices[rows[i].price];
  }
  print_findings(machines);
  if (line.json) {
    output.print(plan_json(machines, line.explains));
    if (options.print_config)
      std::fprintf(stderr, "note: --print-config prints text; without --json it prints settings\n");
  } else {
    for (const PlannedMachine& machine : machines)
      output.print(machine_text(machine, line.explains));
    output.print("\n" + plan_table(machines));
  }
  write_files(line, requests.front(), machines.front());
  note_saving(line, machines);
  const bool all_fit = std::ranges::all_of(
      machines, [](const PlannedMachine& machine) { return machine.refusal.empty(); });
  return all_fit ? 0 : 1;
}

}  // namespace

int plan_program(int argc, char** argv, std::span<const ModelFamily> own) {
  // Files that were asked for are written, whoever reads the text: plan --write-config F | head -1.
  std::signal(SIGPIPE, SIG_IGN);
  return program_main("plan", [&](const RankContext& context, StandardOutput& output) {
    if (context.rank != 0) return 0;  // one rank plans for all
    if (argc > 1 && std::string_view(argv[1]) == "compare")
      return compare_command({argv + 2, static_cast<std::size_t>(argc - 2)}, output);
    const PlanCommandLine line = parse_plan_command_line(argc, argv);
    if (line.help) {
      output.print(plan_help());
      return 0;
    }
    if (line.version) {
      output.print(version_text("plan") + "\n");
      return 0;
    }
    keep_freed_memory();
    return run(line, context, own, output);
  });
}

}  // namespace strata::train
