#include <fmt/format.h>

#include <algorithm>
#include <csignal>
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
#include "core/new_folders.h"
#include "core/program_main.h"
#include "core/standard_output.h"
#include "core/version.h"
#include "machine/hardware_override.h"
#include "plan/disk_writes.h"
#include "plan/foresee.h"
#include "plan/memory_needs.h"
#include "train/config/make_plan.h"
#include "train/config/read_plan.h"
#include "train/planning/flags_beside.h"
#include "train/planning/planned_config.h"
#include "train/planning/planning_text.h"
#include "train/report/report_directory.h"
#include "train/run/kept_inputs.h"
#include "train/run/plan_only.h"
#include "train/run/plan_report.h"
#include "train/run/plan_target.h"
#include "train/run/plan_with_progress.h"
#include "train/run/planning_site.h"
#include "train/run/writable.h"
#include "train/session/compare_command.h"
#include "train/session/plan_command_line.h"
#include "train/session/plan_table.h"
#include "train/session/planning_line.h"
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

/// The command line of `train` for one row; it need not say how much memory to plan for. --hosts
/// changes a figure of the machine as in --hardware, so that the same is asked of it.
ParsedCommandLine train_line(const PlanCommandLine& line, const Planned& row) {
  const std::string hardware =
      line.hosts > 0 ? fmt::format("{},hosts={}", row.hardware, line.hosts) : row.hardware;
  std::vector<std::string> words{"plan"};
  words.insert(words.end(), line.train.begin(), line.train.end());
  if (!hardware.empty()) words.insert(words.end(), {"--hardware", hardware});
  if (!line.targets.empty()) words.insert(words.end(), {"--target-memory", row.target});
  if (line.world > 0) words.insert(words.end(), {"--world-size", std::to_string(line.world)});
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  ParsedCommandLine parsed =
      parse_train_command_line(static_cast<int>(arguments.size()), arguments.data(),
                               {.program = "plan", .own = plan_flags()});
  parsed.chooses = true;
  return parsed;
}

/// Gives each of the hosts that --hosts asks for as many of the ranks of --world. Throws
/// InvalidArgument if that cannot be.
void spread_over_hosts(const PlanCommandLine& line, const std::string& name,
                       machine::Machine& machine) {
  if (line.hosts == 0 || line.world == 0) return;
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(fmt::format("--world {} --hosts {}: {}", line.world, line.hosts, why));
  };
  const int of_host = line.world / line.hosts;
  if (of_host * line.hosts != line.world)
    refuse(fmt::format("the ranks do not spread evenly over the hosts; give --world {}{}",
                       of_host > 0 ? fmt::format("{} or ", of_host * line.hosts) : "",
                       (of_host + 1) * line.hosts));
  if (machine.host_is_device()) return;
  if (of_host > machine.devices)
    refuse(
        fmt::format("that is {} ranks on a host, and a host of {} has {} {}; give more --hosts, "
                    "or --hardware {},devices={}",
                    of_host, name, machine.devices, machine.devices == 1 ? "device" : "devices",
                    name, of_host));
  machine.devices = of_host;
}

RunRequest request_for(const PlanCommandLine& line, const Planned& row, const RankContext& context,
                       std::span<const ModelFamily> own) {
  const ParsedCommandLine train = train_line(line, row);
  RunRequest request = settle_request(train, context, own);
  if (request.hardware) spread_over_hosts(line, row.hardware, *request.hardware);
  assume_ranks(ranks_of(train, request), request);
  return request;
}

/// The same, with settings that do not suit a machine blamed on that one of several.
RunRequest request_of_row(const PlanCommandLine& line, const Planned& row,
                          const RankContext& context, std::span<const ModelFamily> own) {
  try {
    return request_for(line, row, context, own);
  } catch (const ConfigError& error) {
    if (line.hardware.size() < 2) throw;
    throw ConfigError(fmt::format("for {}: {}", row.hardware, error.what()));
  }
}

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
  note_other_saving(request.config.options, set.settings.plan, machine.config.notes);
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

/// A rate between memories as people read it: "50 GB/s".
std::string bytes_rate_text(double bytes_per_second) {
  constexpr double kGiga = 1e9, kMega = 1e6;
  const bool is_large = bytes_per_second >= kGiga;
  return fmt::format("{:.4g} {}", bytes_per_second / (is_large ? kGiga : kMega),
                     is_large ? "GB/s" : "MB/s");
}

/// "  rates are data sheet (computation), assumed (link 25 GB/s, drives 6 GB/s); ...": where they
/// come from, and of what a command line may say in bits or bytes, how much it is. Without drives
/// that a plan may use there is no rate of theirs.
std::string rates_text(const machine::Machine& machine, bool has_drive) {
  using machine::Figure;
  const auto with_rate = [](std::string_view name, const Figure& rate) {
    return std::pair(fmt::format("{} {}", name, bytes_rate_text(rate)), rate);
  };
  std::vector<std::pair<std::string, Figure>> rates{{"computation", machine.device.fp32_flops}};
  if (!machine.host_is_device()) rates.push_back(with_rate("link", machine.link.to_device));
  rates.emplace_back("host memory", machine.memory.bytes_per_second);
  if (has_drive) rates.push_back(with_rate("drives", machine.disk.read_rate));
  if (machine.devices > 1 && !machine.host_is_device())
    rates.push_back(with_rate("links between ranks", machine.peer_rate));
  if (machine.network_rate.known()) rates.push_back(with_rate("network", machine.network_rate));
  std::vector<std::string> parts;
  for (const machine::Source source : {machine::Source::measured, machine::Source::data_sheet,
                                       machine::Source::given, machine::Source::assumed}) {
    std::vector<std::string> names;
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

std::string machine_text(const PlannedMachine& machine, bool explains) {
  std::string text = machine.name + ": " + found_text(machine) + "\n";
  if (machine.refusal.empty())
    for (const std::string& line :
         {drive_wear_text(machine), whole_run_text(machine),
          rates_text(machine.machine, machine.budget.has_drive), several_hosts_text(machine)})
      if (!line.empty()) text += line + "\n";
  if (machine.refusal.empty() && machine.config.options.print_config)
    text += "\n" + describe(machine.config);
  if (explains && !machine.planned.answer.attempts.empty())
    text += "\ncompared:\n" + describe_attempts(machine.planned, machine.asked, machine.budget);
  return text;
}

void print_file_note(const std::string& note) { std::fprintf(stderr, "note: %s\n", note.c_str()); }

/// Names what was said or written of plans: files, "this plan is", or of refusals alone "the least
/// target that is named is"; "": nothing was.
std::string said_of_plans(const PlanCommandLine& line, std::span<const PlannedMachine> machines) {
  const PlannedMachine& first = machines.front();
  std::vector<std::string> files;
  for (const std::string& file : {first.config.options.write_plan, line.config_to_write})
    if (!file.empty() && first.refusal.empty()) files.push_back(file);
  if (!files.empty()) return fmt::format("{}:", fmt::join(files, ", "));
  const auto plans = std::ranges::count_if(
      machines, [](const PlannedMachine& machine) { return machine.refusal.empty(); });
  if (plans > 0) return plans == 1 ? "this plan is" : "these plans are";
  const auto targets = std::ranges::count_if(machines, [](const PlannedMachine& machine) {
    return names_least_target(machine.planned.answer, machine.config, machine.budget);
  });
  if (targets == 0) return "";
  return targets == 1 ? "the least target that is named is"
                      : "the least targets that are named are";
}

/// Says what plans without --output lack for a run that saves. A Plan of --plan says itself whether
/// it is for such a run.
void note_saving(const PlanCommandLine& line, std::span<const PlannedMachine> machines) {
  const TrainOptions& options = machines.front().config.options;
  if (!options.output.empty() || !options.plan.empty()) return;
  if (const std::string said = said_of_plans(line, machines); !said.empty())
    print_file_note(said +
                    " for a run that saves nothing; to train with --output DIR, give plan --output "
                    "DIR, too: saving takes memory");
}

/// Says what is needed beside a file whose settings use a drive that no folder stands for.
void note_folder(const std::string& file, const ResolvedConfig& config) {
  if (choices_of(config.options).uses(plan::Home::disk) &&
      config.options.offload.nvme_paths.empty())
    print_file_note(file +
                    ": the settings use a drive and name no folder there; give plan --nvme-path "
                    "DIR, or it to each run of the file");
}

/// Says what a run of the Plan must be given besides.
void note_shape(const ResolvedConfig& config, int ranks) {
  if (config.options.write_plan.empty()) return;
  print_file_note(fmt::format("{}: for {} {} of this model; give train, too: {}",
                              config.options.write_plan, ranks, ranks == 1 ? "rank" : "ranks",
                              flags_beside(WrittenFile::plan, config)));
  note_folder(config.options.write_plan, config);
}

void write_config(const std::string& file, const ResolvedConfig& config) {
  write_file_atomically(file, planned_config(config));
  note_folder(file, config);
  if (const std::string left = flags_beside(WrittenFile::settings, config); !left.empty())
    print_file_note(file + " does not say everything; give train, too: " + left);
}

/// Writes what the flags ask for of the first machine. `request`: that it was planned for.
void write_files(const PlanCommandLine& line, RunRequest request, const PlannedMachine& machine) {
  if (!machine.refusal.empty()) return;
  if (!line.config_to_write.empty()) write_config(line.config_to_write, machine.config);
  write_plan(machine.config.options, machine.planned.answer.chosen->plan);
  note_shape(machine.config, machine.budget.seat.ranks);
  if (machine.config.options.memory_report.empty()) return;
  request.config = machine.config;
  std::fprintf(stderr, "memory report: %s\n", report_plan(request).c_str());
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
  const std::vector<Planned> rows = planned_rows(line);
  std::vector<RunRequest> requests;  // all of them first, so that a wrong name costs no planning
  for (const Planned& row : rows) requests.push_back(request_of_row(line, row, context, own));
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
  print_findings(machines.front());
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
