#include "train/session/machine_text.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "train/planning/compared_plans.h"
#include "train/planning/planning_text.h"
#include "train/planning/target_needs.h"

namespace strata::train {
namespace {

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

}  // namespace

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

}  // namespace strata::train
