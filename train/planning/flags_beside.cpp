#include "train/planning/flags_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/json_writer.h"
#include "core/shell_word.h"
#include "train/config/flag_table.h"
#include "train/config/option_fields.h"
#include "train/config/read_plan.h"
#include "train/planning/planned_config.h"

namespace strata::train {
namespace {

/// Options that are about planning, and that a run of what was planned must not have; a name that
/// ends with a dot stands for all of its group.
constexpr std::string_view kOfPlanning[] = {"target.",       "plan",       "write_plan",
                                            "memory_report", "print_plan", "print_program",
                                            "print_config"};

/// Options that a Plan has beside what it decides: limits, and what its shape says.
constexpr std::string_view kInPlan[] = {"offload.device_memory_bytes", "offload.host_memory_bytes",
                                        "global_batch"};

/// Options that a run of a Plan must say, given or not: the shape that the Plan is for.
constexpr std::string_view kShapeOfPlan[] = {"sequence_length", "micro_batch", "accumulation",
                                             "dtype"};

template <typename Names>
bool is_listed(const Names& names, std::string_view option) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return name.ends_with('.') ? option.starts_with(name) : option == name;
  });
}

/// True if a run of the file needs the option from elsewhere.
bool is_left(WrittenFile file, const ResolvedConfig& config, std::string_view option) {
  const bool is_chosen = config.origin_of(option) >= Origin::planned;
  if (is_listed(kOfPlanning, option)) return false;
  if (file == WrittenFile::settings) return is_chosen && !is_written(config, option);
  // The time of an update says what becomes of a step that is not finite: a Plan does not decide.
  if (option == "offload.updates") return config.options.offload.updates == UpdateTime::gradient;
  if (is_listed(options_that_plans_decide(), option) || is_listed(kInPlan, option)) return false;
  return is_chosen || is_listed(kShapeOfPlan, option);
}

/// The value as words of a shell.
std::string value_words(const OptionField& field, const std::string& as_typed) {
  if (const auto* list = std::get_if<std::vector<std::string>*>(&field.target)) {
    if (field.flag.comma_separated) return shell_word(fmt::format("{}", fmt::join(**list, ",")));
    std::vector<std::string> words;
    for (const std::string& word : **list) words.push_back(shell_word(word));
    return fmt::format("{}", fmt::join(words, " "));
  }
  const bool is_text = std::holds_alternative<std::string*>(field.target);
  return shell_word(is_text ? as_typed : text_of(field));
}

/// The flag that sets the option to its value: "--zero 3", "--layer-major".
std::string flag_text(const OptionField& field, const std::string& as_typed) {
  const std::string usage = flag_of(field.name), flag = usage.substr(0, usage.find(' '));
  const bool is_on = kind_of(field).is_switch && text_of(field) == "true";
  return is_on ? flag : flag + " " + value_words(field, as_typed);
}

}  // namespace

std::string flags_beside(WrittenFile file, const ResolvedConfig& config) {
  TrainOptions options = config.options;
  const std::vector<OptionField> fields = option_fields(options);
  std::vector<std::string> flags;
  JsonWriter arguments(0);
  arguments.begin_object();
  bool has_arguments = false, has_keys = false;
  const auto by_key = [&](std::string_view option) {
    const OptionField& field = *find_field(fields, option);
    return field.flag.spellings.empty() && field.argument.names.empty() &&
           is_left(file, config, option);
  };
  for (const ResolvedField& resolved : config.fields) {
    const OptionField& field = *find_field(fields, resolved.name);
    if (!is_left(file, config, field.name)) continue;
    if (!field.flag.spellings.empty()) {
      flags.push_back(flag_text(field, resolved.value));
    } else if (!field.argument.names.empty()) {
      arguments.member(std::string(listed(field.argument.names).front()), text_of(field));
      has_arguments = true;
    } else {
      has_keys = true;
    }
  }
  if (has_arguments)
    flags.push_back("--lr_scheduler_kwargs " + shell_word(arguments.end_object().finish()));
  if (has_keys) flags.push_back("--config " + shell_word(config_of(config, by_key)));
  return fmt::format("{}", fmt::join(flags, " "));
}

}  // namespace strata::train
