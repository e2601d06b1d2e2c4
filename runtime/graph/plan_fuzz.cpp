// Fuzzes the texts of a Plan and of actions alone: what is accepted must be written and read back
// the same.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "runtime/graph/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  using strata::runtime::BlockActions;
  using strata::runtime::Plan;
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  std::optional<Plan> plan;
  std::optional<std::vector<BlockActions>> actions;
  try {
    plan = Plan::from_json(text, "input");
  } catch (const strata::ConfigError&) {  // an input may be refused
  }
  try {
    actions = strata::runtime::read_block_actions(text, "input");
  } catch (const strata::ConfigError&) {  // an input may be refused
  }
  if (plan) STRATA_CHECK(Plan::from_json(plan->to_json(), "written") == *plan, plan->to_json());
  if (!actions) return 0;
  const std::string written = strata::runtime::to_json(*actions);
  STRATA_CHECK(strata::runtime::read_block_actions(written, "written") == *actions, written);
  return 0;
}
