#include "train/config/check_options.h"

#include <cstdio>
#include <string>
#include <variant>

#include "core/error.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

/// "": the field's number is one that it may have.
std::string fault_of(const OptionField& field) {
  double number = 0;
  if (const auto* real = std::get_if<double*>(&field.target))
    number = **real;
  else if (const auto* integer = std::get_if<std::int64_t*>(&field.target))
    number = static_cast<double>(**integer);
  else
    return "";
  if (number >= field.lowest && number <= field.highest) return "";  // NaN is neither
  char found[40];
  std::snprintf(found, sizeof found, "%.17g", number);
  return std::string(field.name) + " is " + found + ", " + range_text(field, "a number");
}

}  // namespace

void check_options(const TrainOptions& options, int world) {
  TrainOptions copy = options;
  std::string faults;
  const auto add = [&](const std::string& fault) {
    if (!fault.empty()) faults += (faults.empty() ? "" : "; ") + fault;
  };
  for (const OptionField& field : option_fields(copy)) add(fault_of(field));
  if (options.sequence_length == 0) add("sequence_length is 0, expected tokens per sequence");
  const std::int64_t samples = options.micro_batch * options.accumulation * leaves(options, world);
  if (faults.empty() && options.global_batch != samples)
    add("global_batch is " + std::to_string(options.global_batch) + ", expected " +
        std::to_string(samples) + ": micro_batch " + std::to_string(options.micro_batch) +
        " x accumulation " + std::to_string(options.accumulation) + " x " +
        std::to_string(leaves(options, world)) +
        (options.virtual_ranks > 0 ? " virtual ranks" : " ranks"));
  if (!faults.empty()) throw InvalidArgument("TrainOptions: " + faults);
}

}  // namespace strata::train
