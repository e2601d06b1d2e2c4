#include "train/run/plan_only.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/error.h"
#include "core/format_bytes.h"
#include "core/new_folders.h"
#include "machine/machine.h"
#include "plan/disk_writes.h"
#include "plan/foresee.h"
#include "train/engine/build_programs.h"
#include "train/planning/drive_wear.h"
#include "train/planning/memory_target.h"
#include "train/planning/planning_text.h"
#include "train/planning/refusal_text.h"
#include "train/report/report_directory.h"
#include "train/run/kept_inputs.h"
#include "train/run/memory_advice.h"
#include "train/run/plan_report.h"
#include "train/run/plan_target.h"
#include "train/run/plan_with_progress.h"
#include "train/run/planning_site.h"
#include "train/run/writable.h"

namespace strata::train {
namespace {

/// Says which memory is lacking; empty if all fits.
std::string lacking_memory(const RunRequest& request, const compile::Compiled& found,
                           const MachineMemory& memory) {
  if (!found.fit.fits()) return lacking_memory(found.fit, programs_of(request));
  const MemoryNeeds needs = plan::memory_needs(found.programs);
  if (memory.holds(needs)) return "";
  if (memory.device_bytes && needs.device > *memory.device_bytes)
    return "this plan needs " + format_bytes(needs.device) + " on the device, which has " +
           format_bytes(*memory.device_bytes);
  return "this plan needs " + describe(needs, memory) + ", and " + format_bytes(memory.host_bytes) +
         " are " +
         (request.hardware ? "what the host of --hardware has"
                           : "free on this machine (--host-memory SIZE and --hardware NAME plan "
                             "for another one)");
}

/// Writes what is foreseen to the directory of --memory-report; returns the page's path. `refusal`:
/// why the plan is refused; "": it is not.
std::string report_plan(const RunRequest& request, const PlanningSite& site,
                        const compile::StepPrograms& set, const std::string& refusal) {
  const ProgramRequest programs = programs_of(request);
  const std::string& directory = programs.options.memory_report;
  RunReport report =
      make_report({programs, request.config.fields, set, site.machine, site.seat, site.description,
                   process_bytes(programs.options, site.machine, site.memory.local_world, set)},
                  foresee_step(set, site.machine));
  report.failure = refusal;
  write_report(directory, report, nullptr);
  return report_files(directory).back();
}

/// Says what becomes of the report of a plan that is refused, as a part of the error.
std::string report_refused(const RunRequest& request, const PlanningSite& site,
                           const compile::StepPrograms& set, const std::string& refusal) {
  if (request.config.options.memory_report.empty()) return "";
  if (set.programs.empty()) return "; no memory report is written, since no Programs were made";
  return "; memory report: " + report_plan(request, site, set, refusal);
}

/// Says which drives are too small; empty if all fits.
std::string lacking_drive(const RunRequest& request, const compile::StepPrograms& set) {
  if (!request.hardware || !request.hardware->disk.bytes.known()) return "";
  const std::int64_t needed = set.disk_bytes() * request.context.local_world;
  if (needed <= request.hardware->disk.bytes.whole()) return "";
  return "this plan needs " + format_bytes(needed) +
         " on the drives of a host, and the disk of --hardware has " +
         format_bytes(request.hardware->disk.bytes);
}

compile::Compiled compiled_plan(const RunRequest& request, const PlanningSite& site) {
  const ProgramRequest programs = programs_of(request);
  return plan_programs(
      programs, site.seat, site.machine, savings_of(programs.options), [&](const auto& tried) {
        return tried.fit.fits() && site.memory.holds(plan::memory_needs(tried.programs));
      });
}

/// Finds the Plan of a request as it is. Throws OutOfMemory with advice, HostError.
compile::Compiled found_plan(const RunRequest& request, const PlanningSite& site) {
  const auto& [machine, memory, seat, device] = site;
  compile::Compiled found = compiled_plan(request, site);
  if (const std::string lacking = lacking_memory(request, found, memory); !lacking.empty()) {
    const std::string refusal =
        lacking + "; " +
        memory_advice(programs_of(request),
                      {.seat = seat,
                       .machine = machine,
                       .memory = memory,
                       .device = !machine.host_is_device() || request.hardware ? device : ""});
    throw OutOfMemory(refusal + report_refused(request, site, found.programs, refusal));
  }
  if (const std::string lacking = lacking_drive(request, found.programs); !lacking.empty())
    throw HostError(lacking + report_refused(request, site, found.programs, lacking));
  return found;
}

/// Makes the settings that the target asks for.
RunRequest planned_for_target(RunRequest request, const PlanningSite& site,
                              const RunListeners& listeners) {
  const MemoryBudget budget = target_budget(request, site);
  const PlannedRun planned =
      plan_with_progress(programs_of(request), request.config, budget,
                         [&](const auto& progress) { listeners.tell(Planning{progress}); });
  if (!planned.answer.chosen)
    throw OutOfMemory(fmt::format("--target-memory {}: {}{}", request.config.options.target.memory,
                                  describe_refusal(planned, request.config, budget),
                                  report_refused(request, site, {}, "")));
  set_planned(planned.changes, request.config);
  listeners.print(describe_planned(planned, request.config, budget));
  return request;
}

}  // namespace

FoundPlan find_plan(const RunRequest& request, const PlanningSite& site) {
  FoundPlan found{compiled_plan(request, site), ""};
  found.lacking = lacking_memory(request, found.compiled, site.memory);
  if (found.lacking.empty()) found.lacking = lacking_drive(request, found.compiled.programs);
  return found;
}

bool plans_only(const TrainOptions& options, bool checks) {
  return options.steps == 0 && (checks || options.print_plan || options.print_program);
}

void print_plan_only(const RunRequest& asked, const RunListeners& listeners) {
  keep_inputs(asked);
  NewFolders folders;
  require_report_directory(asked.config.options.memory_report, folders);
  require_writable_file(asked.config.options.write_plan, "--write-plan");
  RunRequest request = asked;
  if (!asked.config.options.target.memory.empty())
    request = planned_for_target(std::move(request), planning_site(asked), listeners);
  const TrainOptions& options = request.config.options;
  const PlanningSite site = planning_site(request);
  const compile::Compiled found = found_plan(request, site);
  const compile::StepPrograms& set = found.programs;
  const double step_seconds = plan::foresee(set, site.machine).step_seconds;
  print_plan(request.config, options, set,
             {.ranks = request.context.world,
              .transport = "planned only",
              .device = site.description,
              .foreseen_seconds = step_seconds,
              .drive_wear = drive_wear_text(
                  site.machine.disk,
                  static_cast<double>(plan::bytes_written_per_step(set)) * site.memory.local_world,
                  step_seconds),
              .rates = source_of_rates(site.machine)},
             listeners);
  write_plan(options, set.settings.plan);
  listeners.print("this plan fits: it needs " + describe(plan::memory_needs(set), site.memory));
  if (!options.memory_report.empty())
    listeners.print("memory report: " + report_plan(request, site, set, ""));
}

std::string report_plan(const RunRequest& request) {
  const PlanningSite site = planning_site(request);
  return report_plan(request, site, found_plan(request, site).programs, "");
}

}  // namespace strata::train
