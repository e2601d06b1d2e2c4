// Checks of the references: their gradients must agree with central differences of their values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace strata::kernels::reference {

/// Returns sum(weights * values), the scalar whose gradients are taken.
inline double weighted_sum(const std::vector<double>& weights, const std::vector<double>& values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += weights[i] * values[i];
  return sum;
}

/// Expects that `gradient` is that of `f` at x, each element to a millionth of the largest.
inline void expect_gradient(const std::function<double(const std::vector<double>&)>& f,
                            std::vector<double> x, const std::vector<double>& gradient) {
  ASSERT_EQ(x.size(), gradient.size());
  double largest = 1e-3;
  for (double g : gradient) largest = std::max(largest, std::fabs(g));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i], step = 1e-5 * std::max(1.0, std::fabs(at));
    x[i] = at + step;
    const double above = f(x);
    x[i] = at - step;
    const double below = f(x);
    x[i] = at;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-6 * largest) << "element " << i;
  }
}

}  // namespace strata::kernels::reference
