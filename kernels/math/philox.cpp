#include "kernels/math/philox.h"

#include <cmath>

#include "core/check.h"

namespace strata::kernels {

std::uint32_t dropout_threshold(double p) {
  STRATA_CHECK(p >= 0 && p < 1, "dropout probability", p);
  const double threshold = std::ceil(p * 0x1p32);
  return threshold >= 0x1p32 ? 0xffffffffu : static_cast<std::uint32_t>(threshold);
}

float dropout_scale(double p) { return static_cast<float>(1.0 / (1.0 - p)); }

}  // namespace strata::kernels
