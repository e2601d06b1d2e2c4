#include "train/session/plan_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/file.h"
#include "train/config/make_plan.h"
#include "train/planning/flags_beside.h"
#include "train/planning/planned_config.h"
#include "train/planning/refusal_text.h"
#include "train/run/plan_only.h"
#include "train/run/plan_report.h"

namespace strata::train {
namespace {

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

}  // namespace

void write_files(const PlanCommandLine& line, RunRequest request, const PlannedMachine& machine) {
  if (!machine.refusal.empty()) return;
  if (!line.config_to_write.empty()) write_config(line.config_to_write, machine.config);
  write_plan(machine.config.options, machine.planned.answer.chosen->plan);
  note_shape(machine.config, machine.budget.seat.ranks);
  if (machine.config.options.memory_report.empty()) return;
  request.config = machine.config;
  std::fprintf(stderr, "memory report: %s\n", report_plan(request).c_str());
}

void note_saving(const PlanCommandLine& line, std::span<const PlannedMachine> machines) {
  const TrainOptions& options = machines.front().config.options;
  if (!options.output.empty() || !options.plan.empty()) return;
  if (const std::string said = said_of_plans(line, machines); !said.empty())
    print_file_note(said +
                    " for a run that saves nothing; to train with --output DIR, give plan --output "
                    "DIR, too: saving takes memory");
}

}  // namespace strata::train
