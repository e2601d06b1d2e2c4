#include "train/config/check_options.h"

#include <fmt/core.h>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "train/config/optimizer_recipe.h"
#include "train/config/option_fields.h"
#include "train/config/settle_steps.h"

namespace strata::train {
namespace {

/// Says what is wrong with the field's number; "" if nothing is.
std::string fault_of(const OptionField& field) {
  double number = 0;
  if (const auto* real = std::get_if<double*>(&field.target))
    number = **real;
  else if (const auto* integer = std::get_if<std::int64_t*>(&field.target))
    number = static_cast<double>(**integer);
  else
    return "";
  if (number >= field.range.lowest && number <= field.range.highest) return "";  // false for NaN
  return fmt::format("{} is {:.17g}, {}", field.name, number, range_text(field, "a number"));
}

}  // namespace

void check_options(const TrainOptions& options, int world) {
  TrainOptions copy = options;
  std::string faults;
  const auto add = [&](const std::string& fault) {
    if (!fault.empty()) faults += (faults.empty() ? "" : "; ") + fault;
  };
  const std::vector<OptionField> fields = option_fields(copy);
  const auto text = [&](std::string_view name) { return text_of(*find_field(fields, name)); };
  for (const OptionField& field : fields) add(fault_of(field));
  if (options.sequence_length == 0) add("sequence_length is 0, expected tokens per sequence");
  const SchedulerOptions& schedule = options.scheduler;
  if (has_end(schedule.type) && schedule.total_num_steps == 0 && !schedule.ends_with_run)
    add("scheduler.total_num_steps is 0, expected the step at which scheduler.type " +
        text("scheduler.type") + " ends");
  if (const std::string needs = missing_for_recipe(options); !needs.empty())
    add("state_recipe " + text("state_recipe") + " needs " + needs);
  const std::int64_t samples = options.micro_batch * options.accumulation * leaves(options, world);
  if (faults.empty() && options.global_batch != samples)
    add(fmt::format("global_batch is {}, expected {}: micro_batch {} x accumulation {} x {}{}",
                    options.global_batch, samples, options.micro_batch, options.accumulation,
                    leaves(options, world),
                    options.virtual_ranks > 0 ? " virtual ranks" : " ranks"));
  if (!faults.empty()) throw InvalidArgument("TrainOptions: " + faults);
}

}  // namespace strata::train
