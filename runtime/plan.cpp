#include "runtime/plan.h"

namespace strata::runtime {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }
std::string boolean(bool value) { return value ? "true" : "false"; }

std::string unit_json(const UnitPlan& unit) {
  return "    {\"unit\": " + quoted(unit.unit) +
         ", \"shard\": {\"optimizer\": " + boolean(unit.shard_optimizer) +
         ", \"gradient\": " + boolean(unit.shard_gradient) +
         ", \"parameter\": " + boolean(unit.shard_parameter) +
         "}, \"tier\": {\"optimizer\": " + quoted(name_of(unit.optimizer_tier)) +
         ", \"gradient\": " + quoted(name_of(unit.gradient_tier)) +
         ", \"parameter\": " + quoted(name_of(unit.parameter_tier)) + "}}";
}

}  // namespace

std::string Plan::to_json() const {
  std::string text =
      "{\n  \"world\": " + std::to_string(world) +
      ",\n  \"micro_steps\": " + std::to_string(micro_steps) +
      ",\n  \"gradient\": {\"produced\": " + quoted(strata::name_of(gradient.produced)) +
      ", \"reduced\": " + quoted(strata::name_of(gradient.reduced)) +
      ", \"accumulated\": " + quoted(strata::name_of(gradient.accumulated)) + "},\n";
  text += "  \"limits\": {\"prefetch_elements\": " + std::to_string(limits.prefetch_elements) +
          ", \"max_live_elements\": " + std::to_string(limits.max_live_elements) +
          ", \"max_reuse_distance\": " + std::to_string(limits.max_reuse_distance) +
          ", \"reduce_bucket_elements\": " + std::to_string(limits.reduce_bucket_elements) +
          ", \"gather_bucket_elements\": " + std::to_string(limits.gather_bucket_elements) +
          ", \"tile_elements\": " + std::to_string(limits.tile_elements) + "},\n";
  text += "  \"recompute\": [";
  for (std::size_t i = 0; i < recompute.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::string("[") + std::to_string(recompute[i].first_block) +
            ", " + std::to_string(recompute[i].last_block) + "]";
  text += "],\n  \"units\": [\n";
  for (std::size_t i = 0; i < units.size(); ++i)
    text += unit_json(units[i]) + (i + 1 < units.size() ? ",\n" : "\n");
  return text + "  ]\n}\n";
}

}  // namespace strata::runtime
