#include "train/config/testing/option_effects.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/json.h"
#include "runtime/testing/small_model.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

constexpr int kWorld = 2;

/// Units above the default persistence threshold, below it (and not decayed), and far above it.
std::vector<runtime::ParameterUnit> units() {
  const auto unit = [](const char* name, std::int64_t elements, bool matrices) {
    runtime::ParameterUnit result;
    result.name = name;
    result.matrices = matrices;
    result.elements = elements;
    result.segments.resize(1);
    return result;
  };
  return {unit("big", 102'400, true), unit("small", 2'048, false), unit("large", 204'800, true)};
}

/// Blocks 1 to 3 are layers, which save values of 64 KiB and more.
const runtime::SmallModelShape kShape{.layers = 3, .batch = 8, .sequence = 64};

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string leaf_text(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::boolean:
      return value.as_boolean() ? "true" : "false";
    case JsonKind::integer:
      return std::to_string(value.as_integer());
    case JsonKind::string:
      return value.as_string();
    case JsonKind::array: {
      std::string text;
      for (const JsonValue& element : value.elements())
        text += (text.empty() ? "" : " ") + leaf_text(element);
      return "[" + text + "]";
    }
    default:
      return value.describe();
  }
}

/// Adds the members of a JSON value by path, units by name.
void flatten(const JsonValue& value, const std::string& name, Effects& effects) {
  if (value.is(JsonKind::object)) {
    for (const auto& [key, member] : value.members())
      if (key != "unit") flatten(member, name + "." + key, effects);
  } else if (name == "plan.saved") {
    for (const JsonValue& range : value.elements())
      flatten(range.at("actions"), name + " " + leaf_text(range.at("blocks")), effects);
  } else if (name == "plan.units") {
    for (const JsonValue& unit : value.elements())
      flatten(unit, unit.at("unit").as_string(), effects);
  } else {
    effects[name] = leaf_text(value);
  }
}

void add_attributes(const kernels::Attributes& attributes, const std::string& name,
                    Effects& effects) {
  for (const auto& [key, value] : attributes.items())
    effects[name + "." + key] = number_text(value);
}

}  // namespace

Effects effects_of(const TrainOptions& options) {
  Effects effects;
  std::vector<runtime::ParameterUnit> model = units();
  apply_weight_decay(model, options);
  for (const runtime::ParameterUnit& unit : model)
    effects[unit.name + ".decay"] = number_text(unit.segments.front().weight_decay);
  const auto plan_of = [&](const runtime::Graph& graph) {
    return plan::with_choices(plan_frame(options, kWorld), choices_of(options),
                              [&](const auto&, auto) { return compile::BuiltModel{graph}; });
  };
  runtime::Graph without_layers;
  without_layers.units = model;
  runtime::Plan plan = plan_of(without_layers);
  plan.saved = plan_of(runtime::small_model(kShape).graph).saved;
  flatten(parse_json(plan.to_json(), "plan", {}), "plan", effects);
  add_attributes(optimizer_attributes(options), "optimizer", effects);
  add_attributes(control_attributes(options), "control", effects);
  effects["loss_scale"] = number_text(initial_loss_scale(options));
  return effects;
}

void set_option(TrainOptions& options, const std::string& name, const std::string& value) {
  const std::vector<OptionField> fields = option_fields(options);
  const OptionField* field = find_field(fields, name);
  ASSERT_NE(field, nullptr) << name << " is no option";
  std::string note;
  ASSERT_EQ(assign(*field, {value}, note), "") << name;
}

Effects difference(const Effects& before, const Effects& after) {
  Effects changed;
  for (const auto& [name, value] : before)
    if (!after.contains(name)) changed[name] = "";
  for (const auto& [name, value] : after)
    if (!before.contains(name) || before.at(name) != value) changed[name] = value;
  return changed;
}

}  // namespace strata::train
