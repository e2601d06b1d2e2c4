#include "kernels/ops/twin_bounds.h"

#include <algorithm>
#include <iterator>

namespace strata::kernels {
namespace {

/// Operations without sums, or with exact ones: kernels of all backends give the same bits.
constexpr std::string_view kSameBits[] = {
    "accumulate",  "adamw", "adamw_bf16",     "adamw_packed", "adamw_8bit",   "lion",
    "lion_packed", "add",   "add_loss",       "convert",      "copy",         "dropout",
    "fill_zero",   "rope",  "gradient_scale", "norm_squares", "residual_add", "rope_table",
    "select_rows", "sgd",   "step_control",   "embedding",    "initialize",   "early_control",
};

}  // namespace

double twin_bound(std::string_view operation, DType output, DType first_input) {
  if (std::find(std::begin(kSameBits), std::end(kSameBits), operation) != std::end(kSameBits))
    return 0;
  // Tensor cores round each partial sum towards zero. That is a bias which grows with the number of
  // terms: 2.4e-5 at 16k of them.
  if (output == DType::f32 && first_input != DType::f32 &&
      (operation == "linear_backward_weight" || operation == "head_loss" || operation == "linear"))
    return 1e-4;
  const bool from_logits = operation == "head_loss" || operation == "head_loss_eval";
  switch (from_logits && output == DType::f64 ? first_input : output) {
    // One rounding to the format is at most 2^-9 (bf16) or 2^-12 (fp16) of a number and 0.6 of that
    // in L2 norm; a difference before the rounding moves few elements by one whole unit.
    case DType::bf16:
      return 5e-3;
    case DType::f16:
      return 6e-4;
    default:
      return 1e-5;
  }
}

}  // namespace strata::kernels
