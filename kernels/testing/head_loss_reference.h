// Head and cross-entropy in plain fp64, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/testing/linear_reference.h"

namespace strata::kernels::reference {

struct HeadLoss {
  double loss = 0;
  Values dx;
  Values dw;
};

/// Computes kernels/ops/head_loss.h for x [n,h], w [v,h]. `stored` returns what a logit becomes
/// when it is stored.
inline HeadLoss head_loss(const Values& x, const Values& w,
                          const std::vector<std::int32_t>& targets, double gradient_scale,
                          double loss_scale, std::int64_t vocabulary, std::int64_t n,
                          std::int64_t v, std::int64_t h,
                          const std::function<double(double)>& stored = {}) {
  HeadLoss result;
  Values logits = matmul(x, false, w, true, n, v, h);
  if (stored) std::transform(logits.begin(), logits.end(), logits.begin(), stored);
  for (std::int64_t i = 0; i < n; ++i) {
    double* row = logits.data() + i * v;
    const std::int64_t target = targets[static_cast<std::size_t>(i)];
    const double largest = *std::max_element(row, row + vocabulary);
    double sum = 0;
    for (std::int64_t j = 0; j < vocabulary; ++j) sum += std::exp(row[j] - largest);
    if (target >= 0) result.loss += loss_scale * (largest + std::log(sum) - row[target]);
    for (std::int64_t j = 0; j < v; ++j) {
      const bool counts = target >= 0 && j < vocabulary;
      const double p = counts ? std::exp(row[j] - largest) / sum : 0.0;
      row[j] = gradient_scale * (p - (counts && j == target ? 1.0 : 0.0));
    }
  }
  result.dx = matmul(logits, false, w, false, n, h, v);
  result.dw = matmul(logits, true, x, false, v, h, n);
  return result;
}

}  // namespace strata::kernels::reference
