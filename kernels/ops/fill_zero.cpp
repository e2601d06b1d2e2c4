#include "kernels/ops/fill_zero.h"

#include <string>

#include "kernels/ops/operand_check.h"

namespace strata::kernels {
namespace {

Types infer(TypeSpan inputs, const Attributes& attributes) {
  OperandCheck("fill_zero", inputs).count(0, 0);
  const auto dtype = static_cast<DType>(attributes.integer("dtype"));
  Types types;
  for (std::string rows = "rows"; attributes.has(rows);
       rows = "rows." + std::to_string(types.size()))
    types.emplace_back(dtype, Shape{attributes.integer(rows)});
  return types;
}

}  // namespace

const Operation& fill_zero_operation() {
  static const Operation operation{
      .name = "fill_zero", .infer = infer, .cost = memory_cost, .spread = kAlike};
  return operation;
}

}  // namespace strata::kernels
