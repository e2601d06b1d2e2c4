// Fuzzes a Plan's text: a Plan that is accepted must be written and read back the same.
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "runtime/graph/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  using strata::runtime::Plan;
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  std::optional<Plan> plan;
  try {
    plan = Plan::from_json(text, "input");
  } catch (const strata::ConfigError&) {  // an input may be refused
  }
  if (plan) STRATA_CHECK(Plan::from_json(plan->to_json(), "written") == *plan, plan->to_json());
  return 0;
}
