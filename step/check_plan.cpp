#include "step/check_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "kernels/ops/add_loss.h"
#include "step/optimizer_formats.h"

namespace strata::step {
namespace {

using runtime::Tier;

using Fields = std::vector<std::pair<std::string, std::string>>;

/// Returns what a recipe says about an operation's state, by key of the Plan's text.
Fields fields_of(const runtime::OptimizerRecipe& recipe) {
  return {{"master", std::string(name_of(recipe.master))},
          {"moments", std::to_string(recipe.moments)},
          {"moment_dtype", std::string(name_of(recipe.moment_dtype))},
          {"scale_block", std::to_string(recipe.scale_block)},
          {"random", recipe.random ? "true" : "false"}};
}

class Checking {
 public:
  Checking(const runtime::Plan& plan, const std::vector<runtime::ParameterUnit>& units,
           const kernels::StepRules* rules)
      : plan_(plan), units_(units), rules_(rules) {}

  std::vector<PlanProblem> run() {
    check_names();
    if (!problems_.empty()) return std::move(problems_);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const runtime::UnitPlan& unit = plan_.units[u];
      if (unit.elements != units_[u].elements) {
        problems_.clear();
        add("elements", std::to_string(unit.elements),
            fmt::format(", and the model has {}; make a Plan for this model", units_[u].elements),
            &unit);
        return std::move(problems_);
      }
      check_tiers(unit);
      check_shards(unit);
      check_residents(unit, units_[u].elements);
      check_recipe(unit);
    }
    check_mesh();
    check_shorter_sequences();
    check_read_ahead();
    check_virtual_ranks();
    check_tiles();
    const runtime::GradientTypes& types = plan_.gradient;
    if (types.accumulated != DType::f32 && types.accumulated != types.produced)
      add("gradient.accumulated", name_of(types.accumulated),
          fmt::format(", expected fp32 or the type produced, {}", name_of(types.produced)));
    if (rules_ != nullptr) check_training(*rules_);
    return std::move(problems_);
  }

 private:
  void add(std::string_view field, std::string_view found, std::string text,
           const runtime::UnitPlan* unit = nullptr) {
    const std::string path =
        unit == nullptr ? "" : fmt::format("units[{}].", unit - plan_.units.data());
    problems_.push_back({path, std::string(field), unit == nullptr ? "" : unit->unit,
                         std::string(found), std::move(text), ""});
  }

  void check_names() {
    for (std::size_t u = 0; u < std::max(plan_.units.size(), units_.size()); ++u) {
      const std::string found =
          u < plan_.units.size() ? "'" + plan_.units[u].unit + "'" : "nothing";
      const std::string expected = u < units_.size() ? "'" + units_[u].name + "'" : "no such unit";
      if (found == expected) continue;
      return add("units", found,
                 fmt::format(" as unit {}, and the model has {}; make a Plan for this model", u,
                             expected));
    }
  }

  void check_tiers(const runtime::UnitPlan& unit) {
    const struct {
      const char* field;
      Tier tier, in_host;
    } kinds[] = {{"tier.optimizer", unit.optimizer_tier, Tier::pageable},
                 {"tier.gradient", unit.gradient_tier, Tier::pinned},
                 {"tier.parameter", unit.parameter_tier, Tier::pinned}};
    for (const auto& [field, tier, in_host] : kinds)
      if (tier != Tier::device && tier != in_host && tier != Tier::disk)
        add(field, name_of(tier), fmt::format(", expected device, {} or disk", name_of(in_host)),
            &unit);
    if (unit.parameter_tier == Tier::disk && unit.shard_optimizer && !unit.shard_parameter)
      add("tier.parameter", name_of(Tier::disk),
          fmt::format(", where each of {} ranks updates a part of what all keep whole on their "
                      "drives; set stage 3, which shards parameters, too, or keep them in host "
                      "memory",
                      plan_.data_ranks()),
          &unit);
  }

  /// Optimizer work is cut at whole cells.
  void check_tiles() {
    const std::int64_t tile = plan_.limits.tile_elements;
    if (tile <= 0 || tile % runtime::kCellElements != 0)
      add("limits.tile_elements", std::to_string(tile),
          fmt::format(", expected a multiple of {}", runtime::kCellElements));
  }

  /// Checks that stages nest: a rank that owns a part of parameters or gradients updates that part.
  void check_shards(const runtime::UnitPlan& unit) {
    if (plan_.data_ranks() == 1) return;
    if (unit.shard_parameter && !unit.shard_gradient)
      add("shard.parameter", "true", ", expected false where gradients are not sharded", &unit);
    if (unit.shard_gradient && !unit.shard_optimizer)
      add("shard.gradient", "true", ", expected false where optimizer state is not sharded", &unit);
  }

  void check_residents(const runtime::UnitPlan& unit, std::int64_t elements) {
    const std::int64_t most =
        (elements + runtime::kCellElements - 1) / runtime::kCellElements * runtime::kCellElements;
    const auto check = [&](std::string_view field, std::int64_t resident) {
      if (resident > most)
        add(field, std::to_string(resident), fmt::format(" elements, and there are {}", elements),
            &unit);
    };
    check("resident.device", unit.optimizer_device_elements);
    check("resident.host", unit.optimizer_host_elements);
    if (unit.optimizer_device_elements > 0 && unit.parameter_tier == Tier::disk)
      add("resident.device", std::to_string(unit.optimizer_device_elements),
          " elements, and parameters on the disk, which move as a whole; set 0", &unit);
  }

  /// Checks formats. The optimizer of a frozen unit, which is not used, may contradict its dtype.
  void check_recipe(const runtime::UnitPlan& unit) {
    const runtime::UnitRecipe& recipe = unit.recipe;
    const runtime::MasterFormat master = recipe.optimizer.master;
    check_format(unit);
    if (!recipe.trainable) return;
    if (master != runtime::MasterFormat::fp32 && recipe.dtype != DType::bf16)
      add("recipe.optimizer.master", name_of(master),
          fmt::format(", which needs dtype bf16, not {}; change one of the two",
                      name_of(recipe.dtype)),
          &unit);
  }

  /// Checks that the optimizer's state is in one of its operation's formats. Otherwise says what to
  /// change to get the nearest one; a change of `random` counts half.
  void check_format(const runtime::UnitPlan& unit) {
    const std::string& operation = unit.recipe.optimizer.operation;
    const Fields found = fields_of(unit.recipe.optimizer);
    std::string operations, changes;
    std::size_t first = 0, fewest = 2 * found.size();
    for (const runtime::OptimizerRecipe& format : formats_) {
      if (!operations.ends_with(format.operation))
        operations += (operations.empty() ? "" : ", ") + format.operation;
      if (format.operation != operation) continue;
      const Fields legal = fields_of(format);
      std::string change;
      std::size_t steps = 0, differs = 0;
      for (std::size_t f = found.size(); f-- > 0;) {
        if (found[f] == legal[f]) continue;
        change = legal[f].first + " " + legal[f].second + (change.empty() ? "" : ", ") + change;
        steps += legal[f].first == "random" ? 1 : 2;
        differs = f;
      }
      if (steps == 0) return;
      if (steps >= fewest) continue;
      fewest = steps;
      first = differs;
      changes = change;
    }
    if (changes.empty())
      add("recipe.optimizer.operation", operation, ", expected one of " + operations, &unit);
    else
      add("recipe.optimizer." + found[first].first, found[first].second,
          fmt::format(", which is no format of {}; set {}", operation, changes), &unit);
  }

  /// Checks that records are read ahead only with a schedule: windows keep them until the next
  /// Program, and only a schedule keeps other values out of the windows.
  void check_read_ahead() {
    if (plan_.read_ahead_bytes > 0 && !plan_.scheduled)
      add("read_ahead_bytes", std::to_string(plan_.read_ahead_bytes),
          ", which needs a schedule; set scheduled to true, or read_ahead_bytes to 0");
  }

  void check_mesh() {
    for (int i = 0; i < comm::kMeshAxes; ++i) {
      const auto axis = static_cast<comm::MeshAxis>(i);
      const int ranks = plan_.mesh.along(axis);
      if (ranks < 1 || (axis != comm::MeshAxis::data && ranks > 1))
        add(fmt::format("mesh.{}", name_of(axis)), std::to_string(ranks),
            " ranks; every axis but data has one so far");
    }
  }

  void check_shorter_sequences() {
    std::int64_t before = 0;
    for (const std::int64_t sequence : plan_.shorter_sequences) {
      if (sequence <= before || sequence >= plan_.shape.sequence)
        return add("shorter_sequences", std::to_string(sequence),
                   fmt::format(" after {}, expected ascending lengths from 1, less than "
                               "shape.sequence, {}",
                               before, plan_.shape.sequence));
      before = sequence;
    }
  }

  void check_virtual_ranks() {
    const int count = plan_.virtual_ranks, ranks = plan_.data_ranks();
    if (count == 0) return;
    const auto refuse = [&](std::string text) {
      add("virtual_ranks", std::to_string(count), std::move(text));
    };
    const auto unsigned_count = static_cast<unsigned>(count);
    if (!std::has_single_bit(unsigned_count)) {
      const unsigned below = std::bit_floor(unsigned_count);
      refuse(fmt::format(", expected a power of two: {} or {}", below, 2 * below));
    } else if (count > kernels::kMaxLossLeaves) {
      refuse(fmt::format(", expected at most {}", kernels::kMaxLossLeaves));
    } else if (count % ranks != 0) {
      std::string worlds;
      for (int world = 1; world <= count; world *= 2)
        worlds += fmt::format("{}{}", worlds.empty() ? "" : world == count ? " or " : ", ", world);
      refuse(fmt::format(" with {} ranks, expected {}{}, or more virtual ranks", ranks, worlds,
                         count == 1 ? " rank" : " ranks"));
    }
    if (plan_.order == runtime::MicroStepOrder::by_layer && count > ranks)
      refuse(
          " with micro-steps layer by layer (layer_major), which adds all micro-batches up before "
          "the ranks; leave one of the two out");
    const bool reduces_each = plan_.units.empty() || plan_.units[0].shard_gradient;
    for (const runtime::UnitPlan& unit : plan_.units)
      if (plan_.leaves_per_rank() > 1 && unit.shard_gradient != reduces_each)
        return refuse(fmt::format(
            ", which needs the gradients of all units sharded or none, and those of '{}' differ: "
            "they decide in which order the micro-steps run",
            unit.unit));
  }

  void check_training(const kernels::StepRules& rules) {
    if (std::ranges::none_of(plan_.units, [](const auto& unit) { return unit.recipe.trainable; }))
      add("recipe.trainable", "false", " for all units; set true for some");
    if (plan_.updates != runtime::Updates::gradient) return;
    const auto refuse = [&](const std::string& text, const char* with) {
      add("updates", name_of(plan_.updates), text + ", or choose step_end or next_step");
      problems_.back().with = with;
    };
    if (rules.clip > 0)
      refuse(fmt::format(" with gradient_clipping {:.17g}, which needs the whole gradient before "
                         "the first update; set gradient_clipping to 0",
                         rules.clip),
             "gradient_clipping");
    if (rules.scale_mode != kernels::ScaleMode::none)
      refuse(" with fp16, whose loss scale skips steps that overflow; train in bf16", "dtype");
    else if (rules.skip_nonfinite)
      refuse(" with bf16.check_grad_overflow, which skips steps that are not finite; set it false",
             "bf16_check_overflow");
  }

  const runtime::Plan& plan_;
  const std::vector<runtime::ParameterUnit>& units_;
  const kernels::StepRules* rules_;
  const std::vector<runtime::OptimizerRecipe> formats_ = optimizer_formats();
  std::vector<PlanProblem> problems_;
};

}  // namespace

std::vector<PlanProblem> find_problems(const runtime::Plan& plan,
                                       const std::vector<runtime::ParameterUnit>& units,
                                       const kernels::StepRules* rules) {
  return Checking(plan, units, rules).run();
}

void require_none(const std::vector<PlanProblem>& problems) {
  if (problems.empty()) return;
  const PlanProblem& first = problems.front();
  throw InvalidArgument("the Plan's " + first.path + first.field +
                        (first.unit.empty() ? "" : " of unit '" + first.unit + "'") + ": found " +
                        first.found + first.text);
}

}  // namespace strata::step
