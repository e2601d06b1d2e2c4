// gelu of single numbers in fp64.
#pragma once

#include <cmath>
#include <numbers>

namespace strata::kernels::reference {

inline double gelu(double x, bool tanh) {
  if (!tanh) return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

inline double gelu_gradient(double x, bool tanh) {
  if (!tanh)
    return 0.5 * std::erfc(-x / std::numbers::sqrt2) +
           x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  const double root = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

}  // namespace strata::kernels::reference
