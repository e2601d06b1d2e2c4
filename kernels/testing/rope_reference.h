// Rotation of pairs (i, i + D / 2) in fp64.
#pragma once

#include <cstddef>
#include <vector>

namespace strata::kernels::reference {

/// Rotates x [N, heads, D]; table [T, D] has cosines, then sines.
inline std::vector<double> rope(const std::vector<double>& x, const std::vector<double>& table,
                                std::size_t heads, std::size_t head_size, std::size_t sequence,
                                bool inverse) {
  std::vector<double> y(x.size());
  const std::size_t half = head_size / 2;
  for (std::size_t at = 0; at < x.size(); at += head_size) {
    const double* row = table.data() + at / head_size / heads % sequence * head_size;
    for (std::size_t i = 0; i < half; ++i) {
      const double cosine = row[i], sine = inverse ? -row[half + i] : row[half + i];
      y[at + i] = x[at + i] * cosine - x[at + half + i] * sine;
      y[at + half + i] = x[at + half + i] * cosine + x[at + i] * sine;
    }
  }
  return y;
}

}  // namespace strata::kernels::reference
