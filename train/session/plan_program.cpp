#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/byte_size.h"
#include "core/error.h"
#include "core/file.h"
#include "core/format_bytes.h"
#include "core/freed_memory.h"
#include "core/program_main.h"
#include "machine/hardware_override.h"
#include "plan/disk_writes.h"
#include "plan/foresee.h"
#include "plan/memory_needs.h"
#include "train/config/make_plan.h"
#include "train/planning/lossy_choices.h"
#include "train/planning/planned_config.h"
#include "train/planning/planning_text.h"
#include "train/report/compare_reports.h"
#include "train/report/report_directory.h"
#include "train/run/plan_only.h"
#include "train/run/plan_report.h"
#include "train/run/plan_target.h"
#include "train/run/planning_site.h"
#include "train/session/plan_command_line.h"
#include "train/session/plan_table.h"
#include "train/session/programs.h"
#include "train/session/settle_request.h"

namespace strata::train {
namespace {

/// The machine and the target of one line of the table.
struct Planned {
  std::string hardware;   ///< "": this machine
  std::string target;     ///< "": what a file says, or all memory
  std::size_t price = 0;  ///< index among the prices
};

/// Every target on every machine.
std::vector<Planned> planned_rows(const PlanCommandLine& line) {
  const std::vector<std::string> none{""};
  std::vector<Planned> rows;
  const auto& machines = line.hardware.empty() ? none : line.hardware;
  for (std::size_t i = 0; i < machines.size(); ++i)
    for (const std::string& target : line.targets.empty() ? none : line.targets)
      rows.push_back({machines[i], target, line.prices.size() == 1 ? 0 : i});
  return rows;
}

/// The command line of `train` for one row; it need not say how much memory to plan for.
ParsedCommandLine train_line(const PlanCommandLine& line, const Planned& row) {
  const std::string& hardware = row.hardware;
  std::vector<std::string> words{"plan"};
  words.insert(words.end(), line.train.begin(), line.train.end());
  if (!hardware.empty()) words.insert(words.end(), {"--hardware", hardware});
  if (!line.targets.empty()) words.insert(words.end(), {"--target-memory", row.target});
  int world = line.world;  // known before settings are resolved: the batch depends on it
  if (world == 0 && line.hosts > 0)
    world = line.hosts * machine::load_overridden_hardware(hardware).devices;
  if (world > 0) words.insert(words.end(), {"--world-size", std::to_string(world)});
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  ParsedCommandLine parsed =
      parse_train_command_line(static_cast<int>(arguments.size()), arguments.data());
  parsed.chooses = true;
  return parsed;
}

RunRequest request_for(const PlanCommandLine& line, const Planned& row, const RankContext& context,
                       std::span<const ModelFamily> own) {
  const ParsedCommandLine train = train_line(line, row);
  RunRequest request = settle_request(train, context, own);
  if (line.hosts > 0) request.hardware->hosts = line.hosts;
  assume_ranks(ranks_of(train, request), request);
  return request;
}

/// Compiles the Plan of --plan as it is, which leaves nothing to choose.
void take_given_plan(const RunRequest& request, const PlanningSite& site, PlannedMachine& machine) {
  const FoundPlan found = find_plan(request, site);
  machine.refusal = found.lacking;
  if (!machine.refusal.empty()) return;
  const compile::StepPrograms& set = found.compiled.programs;
  machine.planned.answer.is_asked = true;
  machine.planned.answer.chosen =
      plan::PlannedStep{.needs = plan::memory_needs(set),
                        .forecast = plan::foresee(set, site.machine),
                        .plan = set.settings.plan,
                        .disk_written_bytes = plan::bytes_written_per_step(set)};
}

/// Notes flags that the machine of --hardware cannot obey.
void note_machine(const RunRequest& request, PlannedMachine& machine) {
  if (!request.hardware) return;
  const OffloadOptions& offload = request.config.options.offload;
  if (!offload.nvme_paths.empty() && !machine.budget.has_drive)
    machine.config.notes.emplace_back(
        "--nvme-path: accepted, unused: the machine of --hardware has no drive");
  const std::int64_t most = machine.budget.most_host_bytes;
  if (offload.host_memory_bytes != kUnlimitedMemory && most > 0 && offload.host_memory_bytes > most)
    machine.config.notes.push_back(fmt::format(
        "--host-memory {}: the host of {} has {}, which is what is planned for",
        byte_size_text(offload.host_memory_bytes), request.hardware->name, format_bytes(most)));
}

PlannedMachine plan_for(const RunRequest& request, const std::string& name) {
  const PlanningSite site = planning_site(request);
  PlannedMachine machine;
  machine.name = name;
  machine.budget = target_budget(request, site);
  machine.asked = machine.config = request.config;
  note_machine(request, machine);
  if (!request.config.options.plan.empty()) {
    take_given_plan(request, site, machine);
    return machine;
  }
  machine.planned = plan_allowed(programs_of(request), request.config, machine.budget);
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

std::string several_hosts_text(const PlannedMachine& machine) {
  if (machine.budget.seat.ranks <= machine.budget.local_ranks) return "";
  return "  over several hosts train has run on CPUs alone so far";
}

/// "  rates are data sheet (computation), assumed (link, drives); ...": where they come from.
std::string rates_text(const machine::Machine& machine) {
  using machine::Figure;
  std::vector<std::pair<std::string_view, Figure>> rates{
      {"computation", machine.device.fp32_flops}, {"host memory", machine.memory.bytes_per_second}};
  if (!machine.host_is_device()) rates.insert(rates.begin() + 1, {"link", machine.link.to_device});
  rates.emplace_back("drives", machine.disk.read_rate);
  rates.emplace_back("network", machine.network_rate);
  std::vector<std::string> parts;
  for (const machine::Source source :
       {machine::Source::measured, machine::Source::data_sheet, machine::Source::assumed}) {
    std::vector<std::string_view> names;
    for (const auto& [name, rate] : rates)
      if (rate.known() && rate.source == source) names.push_back(name);
    if (!names.empty())
      parts.push_back(fmt::format("{} ({})", name_of(source), fmt::join(names, ", ")));
  }
  return fmt::format("  rates are {}; plan reads no times that runs have measured",
                     fmt::join(parts, ", "));
}

std::string found_text(const PlannedMachine& machine) {
  if (!machine.refusal.empty()) return machine.refusal;
  const TrainOptions& options = machine.config.options;
  if (options.plan.empty())
    return describe_planned(machine.planned, machine.config, machine.budget);
  const plan::PlannedStep& step = *machine.planned.answer.chosen;
  return fmt::format("the Plan of {} fits\n  it needs {}\n  a step is foreseen to take {:.3g} s",
                     options.plan, needs_text(step.needs, machine.budget),
                     step.forecast.step_seconds);
}

void print_machine(const PlannedMachine& machine, bool explains) {
  const std::string text = found_text(machine);
  std::printf("%s: %s\n", machine.name.c_str(), text.c_str());
  if (machine.refusal.empty())
    for (const std::string& line :
         {drive_wear_text(machine), whole_run_text(machine), rates_text(machine.budget.machine),
          several_hosts_text(machine)})
      if (!line.empty()) std::printf("%s\n", line.c_str());
  if (explains)
    std::printf("\ncompared:\n%s",
                describe_attempts(machine.planned, machine.asked, machine.budget).c_str());
}

void print_file_note(const std::string& note) { std::fprintf(stderr, "note: %s\n", note.c_str()); }

/// Says what files of a plan without --output lack for a run that saves.
void note_saving(const PlanCommandLine& line, const TrainOptions& options) {
  const bool writes = !line.config_to_write.empty() || !options.write_plan.empty();
  if (!writes || !options.output.empty()) return;
  const bool both = !line.config_to_write.empty() && !options.write_plan.empty();
  print_file_note(fmt::format(
      "{}{}{}: for a run that saves nothing; to train with --output DIR, give plan --output DIR, "
      "too: saving takes memory",
      options.write_plan, both ? ", " : "", line.config_to_write));
}

/// Says what is needed beside a file whose settings use a drive that no folder stands for.
void note_folder(const std::string& file, const ResolvedConfig& config) {
  if (choices_of(config.options).uses(plan::Home::disk) &&
      config.options.offload.nvme_paths.empty())
    print_file_note(file +
                    ": the settings use a drive and name no folder there; give plan --nvme-path "
                    "DIR, or it to each run of the file");
}

void write_config(const std::string& file, const ResolvedConfig& config) {
  write_file_atomically(file, planned_config(config));
  note_folder(file, config);
  if (const std::string left = flags_beside_config(config); !left.empty())
    std::fprintf(stderr, "note: %s leaves to flags what needs files; give train, too: %s\n",
                 file.c_str(), left.c_str());
}

/// Writes what the flags ask for of the first machine. `request`: that it was planned for.
void write_files(const PlanCommandLine& line, RunRequest request, const PlannedMachine& machine) {
  if (!machine.refusal.empty()) return;
  note_saving(line, machine.config.options);
  if (!line.config_to_write.empty()) write_config(line.config_to_write, machine.config);
  write_plan(machine.config.options, machine.planned.answer.chosen->plan);
  if (machine.config.options.memory_report.empty()) return;
  request.config = machine.config;
  std::fprintf(stderr, "memory report: %s\n", report_plan(request).c_str());
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

/// Refuses flags that are about what a planner chose, if a Plan leaves nothing to choose.
void require_choices(const PlanCommandLine& line, const TrainOptions& options) {
  if (options.plan.empty() || (line.config_to_write.empty() && !line.explains)) return;
  throw InvalidArgument(fmt::format(
      "--plan {} decides, and nothing is chosen for {}; leave out one of the two", options.plan,
      line.explains ? "--explain to compare" : "--write-config to write"));
}

int run(const PlanCommandLine& line, const RankContext& context, std::span<const ModelFamily> own) {
  const std::vector<Planned> rows = planned_rows(line);
  std::vector<RunRequest> requests;  // all of them first, so that a wrong name costs no planning
  for (const Planned& row : rows) requests.push_back(request_for(line, row, context, own));
  const TrainOptions& options = requests.front().config.options;
  if (rows.size() > 1 && !(options.memory_report.empty() && options.write_plan.empty()))
    throw InvalidArgument(
        "--memory-report and --write-plan write one plan; name one machine and one target");
  require_choices(line, options);
  require_report_directory(options.memory_report);
  std::vector<PlannedMachine> machines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string name = rows[i].hardware.empty() ? "here" : rows[i].hardware;
    machines.push_back(
        plan_for(requests[i], line.targets.size() > 1 ? name + " " + rows[i].target : name));
    if (!line.prices.empty()) machines.back().price_per_hour = line.prices[rows[i].price];
  }
  print_findings(machines.front());
  if (line.json) {
    std::fputs(plan_json(machines).c_str(), stdout);
  } else {
    for (const PlannedMachine& machine : machines) print_machine(machine, line.explains);
    std::printf("\n%s", plan_table(machines).c_str());
  }
  write_files(line, requests.front(), machines.front());
  const bool all_fit = std::ranges::all_of(
      machines, [](const PlannedMachine& machine) { return machine.refusal.empty(); });
  return all_fit ? 0 : 1;
}

}  // namespace

int plan_program(int argc, char** argv, std::span<const ModelFamily> own) {
  return program_main("plan", [&](const RankContext& context) {
    if (context.rank != 0) return 0;  // one rank plans for all
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
