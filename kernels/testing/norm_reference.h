// Layer norm and RMS norm of vectors of C elements in fp64.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace strata::kernels::reference {

struct Norm {
  std::vector<double> y, stats;
};

/// `bias` may be empty.
inline Norm norm(const std::vector<double>& x, const std::vector<double>& weight,
                 const std::vector<double>& bias, double eps, bool rms) {
  const std::size_t columns = weight.size();
  const auto count = static_cast<double>(columns);
  Norm result;
  result.y.resize(x.size());
  for (std::size_t at = 0; at < x.size(); at += columns) {
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < columns && !rms; ++c) mean += x[at + c] / count;
    for (std::size_t c = 0; c < columns; ++c)
      variance += (x[at + c] - mean) * (x[at + c] - mean) / count;
    const double scale = 1 / std::sqrt(variance + eps);
    result.stats.insert(result.stats.end(), {mean, scale});
    for (std::size_t c = 0; c < columns; ++c)
      result.y[at + c] = (x[at + c] - mean) * scale * weight[c] + (bias.empty() ? 0 : bias[c]);
  }
  return result;
}

struct NormGradients {
  std::vector<double> dx, dweight, dbias;
};

/// `dsum` may be empty.
inline NormGradients norm_backward(const std::vector<double>& dy, const std::vector<double>& x,
                                   const std::vector<double>& weight,
                                   const std::vector<double>& stats,
                                   const std::vector<double>& dsum, bool rms) {
  const std::size_t columns = weight.size();
  const auto count = static_cast<double>(columns);
  NormGradients g{std::vector<double>(x.size()), std::vector<double>(columns),
                  std::vector<double>(columns)};
  for (std::size_t at = 0, n = 0; at < x.size(); at += columns, ++n) {
    const double mean = stats[2 * n], scale = stats[2 * n + 1];
    double sum = 0, product = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const double normal = (x[at + c] - mean) * scale, inner = dy[at + c] * weight[c];
      sum += inner / count;
      product += inner * normal / count;
      g.dweight[c] += dy[at + c] * normal;
      g.dbias[c] += dy[at + c];
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const double normal = (x[at + c] - mean) * scale;
      g.dx[at + c] = scale * (dy[at + c] * weight[c] - (rms ? 0 : sum) - normal * product) +
                     (dsum.empty() ? 0 : dsum[at + c]);
    }
  }
  return g;
}

}  // namespace strata::kernels::reference
