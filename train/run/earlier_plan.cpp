#include "train/run/earlier_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/file_system.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/config/option_fields.h"
#include "train/config/settings.h"
#include "train/run/resume_source.h"
#include "train/run/resume_terms.h"

namespace strata::train {
namespace {

/// True for limits of memory, which alone change no step.
bool is_limit(std::string_view option) {
  return option == "offload.device_memory_bytes" || option == "offload.host_memory_bytes";
}

/// True for options that the planner leaves as they are if a flag or the file gives them.
bool binds_planner(std::string_view option) {
  return option == "plan" || makes_setting(option, plan::Setting::all) ||
         (option.starts_with("offload.") && option != "offload.nvme_paths");
}

/// True for options that say how much there is to plan, and for which memory.
bool is_term(std::string_view option) {
  return option == "global_batch" || option == "sequence_length" || option.starts_with("target.");
}

/// Names and values of lines, in their order; a line without a value is left out.
std::vector<PlannedOption> values_of(const std::string& lines) {
  std::vector<PlannedOption> values;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);)
    if (const std::size_t space = line.find(' '); space != std::string::npos)
      values.push_back({line.substr(0, space), line.substr(space + 1)});
  return values;
}

std::string value_in(const std::vector<PlannedOption>& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &PlannedOption::name);
  return found == values.end() ? "" : found->value;
}

std::string without_limits(const std::string& lines) {
  std::vector<PlannedOption> values = values_of(lines);
  std::erase_if(values, [](const PlannedOption& value) { return is_limit(value.name); });
  return to_lines(values);
}

/// The checkpoint that ResumeSource would choose first; "": none.
std::string chosen_directory(FileSystem& files, const TrainOptions& options,
                             const std::optional<Restart>& restart) {
  if (restart && !options.output.empty())
    if (const auto own =
            newest_checkpoint(files, options.output, Verification::sizes,
                              std::numeric_limits<std::int64_t>::max(), restart->run_id)
                .found)
      return own->path;
  const std::string& resume = options.checkpoint.resume;
  if (same_word(resume, "never")) return "";
  if (!leaves_choice(resume)) return resume;
  if (options.output.empty()) return "";
  const auto found = newest_checkpoint(files, options.output, Verification::sizes).found;
  return found ? found->path : "";
}

}  // namespace

std::string asked_of_planner(const ResolvedConfig& config, int ranks) {
  std::vector<PlannedOption> asked{{"ranks", std::to_string(ranks)}};
  TrainOptions options = config.options;
  for (const OptionField& field : option_fields(options)) {
    const Origin origin = config.origin_of(field.name);
    const bool is_given = origin == Origin::file || origin == Origin::command_line;
    if (is_term(field.name) || (is_given && binds_planner(field.name)))
      asked.push_back({std::string(field.name), text_of(field)});
  }
  asked.push_back({"drive", options.offload.nvme_paths.empty() ? "no" : "yes"});
  return to_lines(asked);
}

std::optional<EarlierPlan> find_earlier_plan(const TrainOptions& options,
                                             const std::optional<Restart>& restart) {
  try {
    PosixFileSystem files;
    EarlierPlan earlier{chosen_directory(files, options, restart), {}};
    if (earlier.directory.empty()) return {};
    const CheckpointReader reader(files, earlier.directory);
    for (const auto& [fact, text] : reader.manifest().facts) {
      if (fact == kAskedFact) earlier.plan.asked = text;
      if (fact == kPlannedFact) earlier.plan.planned = text;
    }
    if (earlier.plan.asked.empty()) return {};
    return earlier;
  } catch (const Error&) {
    return {};
  }
}

std::optional<std::vector<PlannedOption>> read_planned(const std::string& planned) {
  TrainOptions options;
  const std::vector<OptionField> fields = option_fields(options);
  std::vector<PlannedOption> changes = values_of(planned);
  std::string unused;
  for (const PlannedOption& change : changes) {
    const OptionField* field = find_field(fields, change.name);
    if (field == nullptr || !may_be_planned(change.name)) return {};
    if (!assign(*field, {change.value}, unused).empty()) return {};
  }
  return changes;
}

std::string differences(const std::string& there, const std::string& here,
                        std::string_view absent) {
  const std::vector<PlannedOption> then = values_of(there), now = values_of(here);
  std::vector<std::string> names;
  for (const auto* values : {&then, &now})
    for (const PlannedOption& value : *values)
      if (std::ranges::find(names, value.name) == names.end()) names.push_back(value.name);
  std::vector<std::string> differing;
  const auto shown = [&](const std::string& value) {
    return value.empty() ? std::string(absent) : value;
  };
  for (const std::string& name : names)
    if (const std::string old = value_in(then, name), fresh = value_in(now, name); old != fresh)
      differing.push_back(fmt::format("{} {} there, {} here", name, shown(old), shown(fresh)));
  return fmt::format("{}", fmt::join(differing, ", "));
}

std::string note_on_plan(const TargetPlan& there, const TargetPlan& here, const std::string& why) {
  if (there.asked.empty() || here.asked.empty()) return "";
  const std::string settings =
      differences(without_limits(there.planned), without_limits(here.planned), "not planned");
  if (settings.empty()) return "";
  std::string reason = differences(there.asked, here.asked, "open");
  if (!reason.empty())
    reason = "what is asked for differs, too: " + reason;
  else
    reason = why.empty() ? "they were planned before this checkpoint was chosen" : why;
  return fmt::format(
      "the settings are planned anew and differ from those of the checkpoint: {}; {}. {}", settings,
      reason, kOtherMicroBatch);
}

}  // namespace strata::train
