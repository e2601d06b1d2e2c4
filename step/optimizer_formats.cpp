#include "step/optimizer_formats.h"

#include "kernels/ops/adamw_8bit.h"

namespace strata::step {

std::vector<runtime::OptimizerRecipe> optimizer_formats() {
  using runtime::MasterFormat;
  constexpr DType kWide = DType::f32, kNarrow = DType::bf16;
  return {{"adamw", MasterFormat::fp32, 2, kWide, 0, false},
          {"adamw", MasterFormat::fp32, 2, kNarrow, 0, true},
          {"adamw_packed", MasterFormat::packed, 2, kWide, 0, false},
          {"adamw_packed", MasterFormat::packed, 2, kNarrow, 0, true},
          {"adamw_8bit", MasterFormat::fp32, 2, DType::u8, kernels::kQuantizedBlock, false},
          {"adamw_bf16", MasterFormat::none, 2, kNarrow, 0, true},
          {"lion", MasterFormat::fp32, 1, kWide, 0, false},
          {"lion", MasterFormat::fp32, 1, kNarrow, 0, true},
          {"lion_packed", MasterFormat::packed, 1, kWide, 0, false},
          {"lion_packed", MasterFormat::packed, 1, kNarrow, 0, true},
          {"sgd", MasterFormat::fp32, 0, kWide, 0, false},
          {"sgd", MasterFormat::fp32, 1, kWide, 0, false}};
}

}  // namespace strata::step
