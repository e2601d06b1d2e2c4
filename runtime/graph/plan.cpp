#include "runtime/graph/plan.h"

#include <fmt/core.h>
#include <algorithm>
#include <set>

#include "core/json.h"
#include "core/json_writer.h"
#include "runtime/graph/parameter_unit.h"
#include "runtime/graph/strict_json.h"

namespace strata::runtime {
namespace {

constexpr std::array kUpdates{Updates::step_end, Updates::next_step, Updates::gradient};
constexpr std::array kSaveMemories{SaveMemory::none, SaveMemory::writing, SaveMemory::snapshot,
                                   SaveMemory::windows};
constexpr std::array kOrders{MicroStepOrder::one_by_one, MicroStepOrder::by_layer};
constexpr std::array kFloatTypes{DType::f32, DType::bf16, DType::f16};
constexpr std::array kMomentTypes{DType::f32, DType::bf16, DType::u8};
constexpr std::array kMasterFormats{MasterFormat::fp32, MasterFormat::packed, MasterFormat::none};
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostMicroSteps = 1 << 30;
constexpr std::int64_t kMostInShape = 1 << 30;
constexpr std::int64_t kMostTileElements = std::int64_t{1} << 40;
constexpr int kMostMoments = 2;
constexpr std::int64_t kMostInScaleBlock = 1 << 20;
constexpr int kPlanVersion = 5;
constexpr std::array<std::string_view, 2> kBackends{"cpu", "cuda"};

/// The name of a limit in the text, and its field.
struct LimitField {
  std::string_view name;
  std::int64_t TransferLimits::*field;
};
constexpr std::array kLimitFields{
    LimitField{"prefetch_elements", &TransferLimits::prefetch_elements},
    LimitField{"max_live_elements", &TransferLimits::max_live_elements},
    LimitField{"max_reuse_distance", &TransferLimits::max_reuse_distance},
    LimitField{"reduce_bucket_elements", &TransferLimits::reduce_bucket_elements},
    LimitField{"gather_bucket_elements", &TransferLimits::gather_bucket_elements},
    LimitField{"tile_elements", &TransferLimits::tile_elements},
};

// ---- writing

std::string boolean(bool value) { return value ? "true" : "false"; }

template <typename Named>
std::string quoted_name(Named value) {
  return quoted_json(name_of(value));
}

std::string amount(std::int64_t value) {
  return value == kUnlimited ? "\"unlimited\"" : std::to_string(value);
}

std::string mesh_json(const comm::Mesh& mesh) {
  std::string text;
  for (int i = 0; i < comm::kMeshAxes; ++i) {
    const auto axis = static_cast<comm::MeshAxis>(i);
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", quoted_name(axis), mesh.along(axis));
  }
  return "{" + text + "}";
}

std::string limits_json(const TransferLimits& limits) {
  std::string text;
  for (const LimitField& limit : kLimitFields)
    text +=
        (text.empty() ? "" : ", ") + quoted_json(limit.name) + ": " + amount(limits.*limit.field);
  return "{" + text + "}";
}

std::string budget_json(const TierBytes& budget_bytes) {
  std::string text;
  for (Tier tier : kAllTiers)
    text += (text.empty() ? "" : ", ") + quoted_name(tier) + ": " +
            amount(budget_bytes[static_cast<std::size_t>(tier)]);
  return "{" + text + "}";
}

std::string optimizer_json(const OptimizerRecipe& optimizer) {
  return "{\"operation\": " + quoted_json(optimizer.operation) +
         ", \"master\": " + quoted_name(optimizer.master) +
         ", \"moments\": " + std::to_string(optimizer.moments) +
         ", \"moment_dtype\": " + quoted_name(optimizer.moment_dtype) +
         ", \"scale_block\": " + std::to_string(optimizer.scale_block) +
         ", \"random\": " + boolean(optimizer.random) + "}";
}

/// Writes the whole recipe, or only what differs from `common` if there is one.
std::string recipe_json(const UnitRecipe& recipe, const UnitRecipe* common) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += (text.empty() ? "" : ", ") + quoted_json(key) + ": " + value;
  };
  if (common == nullptr || recipe.dtype != common->dtype) add("dtype", quoted_name(recipe.dtype));
  if (common == nullptr || recipe.trainable != common->trainable)
    add("trainable", boolean(recipe.trainable));
  if (common == nullptr || recipe.optimizer != common->optimizer)
    add("optimizer", optimizer_json(recipe.optimizer));
  return "{" + text + "}";
}

/// Returns the recipe of most units; among equally frequent ones, the first.
UnitRecipe common_recipe(const std::vector<UnitPlan>& units) {
  UnitRecipe common;
  std::ptrdiff_t most = 0;
  for (const UnitPlan& unit : units) {
    const auto count = std::ranges::count(units, unit.recipe, &UnitPlan::recipe);
    if (count <= most) continue;
    most = count;
    common = unit.recipe;
  }
  return common;
}

std::string unit_json(const UnitPlan& unit, const UnitRecipe& common) {
  return "    {\"unit\": " + quoted_json(unit.unit) +
         ", \"elements\": " + std::to_string(unit.elements) +
         ", \"shard\": {\"optimizer\": " + boolean(unit.shard_optimizer) +
         ", \"gradient\": " + boolean(unit.shard_gradient) +
         ", \"parameter\": " + boolean(unit.shard_parameter) +
         "}, \"tier\": {\"optimizer\": " + quoted_name(unit.optimizer_tier) +
         ", \"gradient\": " + quoted_name(unit.gradient_tier) +
         ", \"parameter\": " + quoted_name(unit.parameter_tier) +
         "}, \"resident\": {\"device\": " + std::to_string(unit.optimizer_device_elements) +
         ", \"host\": " + std::to_string(unit.optimizer_host_elements) + "}" +
         (unit.recipe == common ? "" : ", \"recipe\": " + recipe_json(unit.recipe, &common)) + "}";
}

std::string numbers_json(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

/// Writes each of `lines` on a line of its own.
std::string list_json(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "\n" : ",\n") + line;
  return text.empty() ? "[]" : "[" + text + "\n  ]";
}

// ---- reading

std::int64_t read_amount(const JsonValue& value) {
  if (value.is(JsonKind::string) && value.as_string() == "unlimited") return kUnlimited;
  if (!value.is(JsonKind::integer) || value.as_integer() < 0)
    refuse(value, "an integer from 0 or \"unlimited\"");
  return value.as_integer();
}

kernels::DeviceCapabilities::Backend read_backend(const JsonValue& value) {
  const std::string found = value.as_string();
  for (std::size_t b = 0; b < kBackends.size(); ++b)
    if (kBackends[b] == found) return static_cast<kernels::DeviceCapabilities::Backend>(b);
  refuse(value, "one of cpu, cuda");
}

comm::Mesh read_mesh(const JsonValue& object) {
  std::vector<std::string_view> names;
  for (int i = 0; i < comm::kMeshAxes; ++i)
    names.push_back(name_of(static_cast<comm::MeshAxis>(i)));
  expect_keys(object, names);
  comm::Mesh mesh;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const JsonValue size = object.at(names[i]);
    mesh.sizes[i] = number(size, 1, kMostRanks);
    if (i != static_cast<std::size_t>(comm::MeshAxis::data) && mesh.sizes[i] != 1)
      refuse(size, "1: every axis but data has one rank so far");
  }
  return mesh;
}

BatchShape read_shape(const JsonValue& object) {
  expect_keys(object, {"dtype", "batch", "sequence"});
  return {one_of(object.at("dtype"), kFloatTypes), number(object.at("batch"), 1, kMostInShape),
          number(object.at("sequence"), 1, kMostInShape)};
}

std::vector<std::int64_t> read_shorter_sequences(const JsonValue& list, std::int64_t sequence) {
  std::vector<std::int64_t> shorter;
  for (const JsonValue& tokens : list.elements()) {
    const std::int64_t before = shorter.empty() ? 0 : shorter.back(), found = tokens.as_integer();
    if (found <= before || found >= sequence)
      refuse(tokens,
             fmt::format("more than {} and less than shape.sequence, {}", before, sequence));
    shorter.push_back(found);
  }
  return shorter;
}

GradientTypes read_gradient(const JsonValue& object) {
  expect_keys(object, {"produced", "reduced", "accumulated"});
  GradientTypes types;
  types.produced = one_of(object.at("produced"), kFloatTypes);
  types.reduced = one_of(object.at("reduced"), kFloatTypes);
  types.accumulated = one_of(object.at("accumulated"), kFloatTypes);
  if (types.accumulated != DType::f32 && types.accumulated != types.produced)
    refuse(object.at("accumulated"), "fp32 or the type produced");
  return types;
}

/// Reads the tile size; optimizer work is cut at whole cells.
std::int64_t read_tile(const JsonValue& value) {
  const std::int64_t tile = value.is(JsonKind::integer) ? value.as_integer() : 0;
  if (tile < kCellElements || tile > kMostTileElements || tile % kCellElements != 0)
    refuse(value, fmt::format("a multiple of {}, at most {}", kCellElements, kMostTileElements));
  return tile;
}

TransferLimits read_limits(const JsonValue& object) {
  std::vector<std::string_view> names;
  for (const LimitField& limit : kLimitFields) names.push_back(limit.name);
  expect_keys(object, names);
  TransferLimits limits;
  for (const LimitField& limit : kLimitFields)
    limits.*limit.field = limit.field == &TransferLimits::tile_elements
                              ? read_tile(object.at(limit.name))
                              : read_amount(object.at(limit.name));
  return limits;
}

TierBytes read_budget(const JsonValue& object) {
  std::vector<std::string_view> names;
  for (Tier tier : kAllTiers) names.push_back(name_of(tier));
  expect_keys(object, names);
  TierBytes bytes{};
  for (Tier tier : kAllTiers)
    bytes[static_cast<std::size_t>(tier)] = read_amount(object.at(name_of(tier)));
  return bytes;
}

OptimizerRecipe read_optimizer(const JsonValue& object) {
  expect_keys(object, {"operation", "master", "moments", "moment_dtype", "scale_block", "random"});
  OptimizerRecipe recipe;
  recipe.operation = object.at("operation").as_string();
  recipe.master = one_of(object.at("master"), kMasterFormats);
  recipe.moments = number(object.at("moments"), 0, kMostMoments);
  recipe.moment_dtype = one_of(object.at("moment_dtype"), kMomentTypes);
  recipe.scale_block = number(object.at("scale_block"), 0, kMostInScaleBlock);
  recipe.random = object.at("random").as_boolean();
  return recipe;
}

/// Reads the whole recipe, or only what differs from `common` if there is one.
UnitRecipe read_recipe(const JsonValue& object, const UnitRecipe* common) {
  const std::vector<std::string_view> keys{"dtype", "trainable", "optimizer"};
  if (common == nullptr)
    expect_keys(object, keys);
  else
    expect_keys(object, {}, keys);
  UnitRecipe recipe = common == nullptr ? UnitRecipe{} : *common;
  if (const auto dtype = object.find("dtype")) recipe.dtype = one_of(*dtype, kFloatTypes);
  if (const auto trainable = object.find("trainable")) recipe.trainable = trainable->as_boolean();
  if (const auto optimizer = object.find("optimizer"))
    recipe.optimizer = read_optimizer(*optimizer);
  return recipe;
}

std::int64_t read_elements(const JsonValue& value) {
  if (!value.is(JsonKind::integer) || value.as_integer() < 0) refuse(value, "an integer from 0");
  return value.as_integer();
}

UnitPlan read_unit(const JsonValue& object, const UnitRecipe& common) {
  expect_keys(object, {"unit", "elements", "shard", "tier", "resident"}, {"recipe"});
  const JsonValue shard = object.at("shard"), tier = object.at("tier");
  for (const JsonValue& kinds : {shard, tier})
    expect_keys(kinds, {"optimizer", "gradient", "parameter"});
  UnitPlan plan;
  plan.unit = object.at("unit").as_string();
  plan.elements = read_elements(object.at("elements"));
  plan.shard_optimizer = shard.at("optimizer").as_boolean();
  plan.shard_gradient = shard.at("gradient").as_boolean();
  plan.shard_parameter = shard.at("parameter").as_boolean();
  plan.optimizer_tier = one_of(tier.at("optimizer"), kAllTiers);
  plan.gradient_tier = one_of(tier.at("gradient"), kAllTiers);
  plan.parameter_tier = one_of(tier.at("parameter"), kAllTiers);
  const JsonValue resident = object.at("resident");
  expect_keys(resident, {"device", "host"});
  plan.optimizer_device_elements = read_elements(resident.at("device"));
  plan.optimizer_host_elements = read_elements(resident.at("host"));
  const auto recipe = object.find("recipe");
  plan.recipe = recipe ? read_recipe(*recipe, &common) : common;
  return plan;
}

std::vector<UnitPlan> read_units(const JsonValue& list, const UnitRecipe& common) {
  std::vector<UnitPlan> units;
  std::set<std::string> names;
  for (const JsonValue& object : list.elements()) {
    units.push_back(read_unit(object, common));
    if (units.back().unit.empty() || !names.insert(units.back().unit).second)
      refuse(object.at("unit"), "a name that no other unit has");
  }
  return units;
}

}  // namespace

std::string_view name_of(MasterFormat format) {
  constexpr std::string_view kNames[] = {"fp32", "packed", "none"};
  return kNames[static_cast<int>(format)];
}

std::string_view name_of(Updates updates) {
  constexpr std::string_view kNames[] = {"step_end", "next_step", "gradient"};
  return kNames[static_cast<int>(updates)];
}

std::string_view name_of(MicroStepOrder order) {
  return order == MicroStepOrder::one_by_one ? "one_by_one" : "by_layer";
}

std::string_view name_of(SaveMemory saving) {
  constexpr std::string_view kNames[] = {"none", "writing", "snapshot", "windows"};
  return kNames[static_cast<int>(saving)];
}

std::string Plan::to_json() const {
  std::string text =
      "{\n  \"version\": " + std::to_string(kPlanVersion) +
      ",\n  \"backend\": " + quoted_json(kBackends[static_cast<std::size_t>(backend)]) +
      ",\n  \"mesh\": " + mesh_json(mesh) +
      ",\n  \"shape\": {\"dtype\": " + quoted_name(shape.dtype) +
      ", \"batch\": " + std::to_string(shape.batch) +
      ", \"sequence\": " + std::to_string(shape.sequence) + "}" +
      ",\n  \"shorter_sequences\": " + numbers_json(shorter_sequences) +
      ",\n  \"micro_steps\": " + std::to_string(micro_steps) +
      ",\n  \"virtual_ranks\": " + std::to_string(virtual_ranks) +
      ",\n  \"gradient\": {\"produced\": " + quoted_name(gradient.produced) +
      ", \"reduced\": " + quoted_name(gradient.reduced) +
      ", \"accumulated\": " + quoted_name(gradient.accumulated) +
      "},\n  \"limits\": " + limits_json(limits) + ",\n  \"saving\": " + quoted_name(saving) +
      ",\n  \"evaluates\": " + boolean(evaluates) + ",\n  \"scheduled\": " + boolean(scheduled) +
      ",\n  \"read_ahead_bytes\": " + amount(read_ahead_bytes) +
      ",\n  \"budget_bytes\": " + budget_json(budget_bytes) +
      ",\n  \"host_bytes\": " + amount(host_bytes) + ",\n  \"updates\": " + quoted_name(updates) +
      ",\n  \"order\": " + quoted_name(order);
  std::vector<std::string> ranges, lines;
  for (const BlockActions& range : saved) ranges.push_back("    " + runtime::to_json(range));
  const UnitRecipe common = common_recipe(units);
  for (const UnitPlan& unit : units) lines.push_back(unit_json(unit, common));
  return text + ",\n  \"saved\": " + list_json(ranges) +
         ",\n  \"recipe\": " + recipe_json(common, nullptr) +
         ",\n  \"units\": " + list_json(lines) + "\n}\n";
}

Plan Plan::from_json(std::string_view text, const std::string& file) {
  JsonOptions options;
  options.fault = JsonFault::configuration;
  const JsonValue top = parse_json(text, file, options);
  if (const auto version = top.find("version");
      version && (!version->is(JsonKind::integer) || version->as_integer() != kPlanVersion))
    refuse(*version, fmt::format("version {} of Plans", kPlanVersion));
  expect_keys(top, {"version",      "backend",       "mesh",      "shape",
                    "micro_steps",  "virtual_ranks", "gradient",  "limits",
                    "saving",       "evaluates",     "scheduled", "read_ahead_bytes",
                    "budget_bytes", "host_bytes",    "updates",   "shorter_sequences",
                    "order",        "saved",         "recipe",    "units"});
  Plan plan;
  plan.backend = read_backend(top.at("backend"));
  plan.mesh = read_mesh(top.at("mesh"));
  plan.shape = read_shape(top.at("shape"));
  plan.shorter_sequences = read_shorter_sequences(top.at("shorter_sequences"), plan.shape.sequence);
  plan.saving = one_of(top.at("saving"), kSaveMemories);
  plan.evaluates = top.at("evaluates").as_boolean();
  plan.scheduled = top.at("scheduled").as_boolean();
  plan.read_ahead_bytes = read_amount(top.at("read_ahead_bytes"));
  plan.host_bytes = read_amount(top.at("host_bytes"));
  plan.micro_steps = number(top.at("micro_steps"), 1, kMostMicroSteps);
  plan.virtual_ranks = number(top.at("virtual_ranks"), 0, kMostRanks);
  plan.gradient = read_gradient(top.at("gradient"));
  plan.limits = read_limits(top.at("limits"));
  plan.budget_bytes = read_budget(top.at("budget_bytes"));
  plan.saved = block_actions_of(top.at("saved"));
  plan.updates = one_of(top.at("updates"), kUpdates);
  plan.order = one_of(top.at("order"), kOrders);
  plan.units = read_units(top.at("units"), read_recipe(top.at("recipe"), nullptr));
  return plan;
}

}  // namespace strata::runtime
