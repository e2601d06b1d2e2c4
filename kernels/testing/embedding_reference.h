// Look-up of rows and its gradients in fp64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::kernels::reference {

/// `positions` may be empty.
inline std::vector<double> embedding(const std::vector<std::int32_t>& ids,
                                     const std::vector<double>& table,
                                     const std::vector<double>& positions, std::size_t columns,
                                     std::size_t sequence) {
  std::vector<double> x;
  for (std::size_t n = 0; n < ids.size(); ++n)
    for (std::size_t c = 0; c < columns; ++c)
      x.push_back(table[static_cast<std::size_t>(ids[n]) * columns + c] +
                  (positions.empty() ? 0 : positions[n % sequence * columns + c]));
  return x;
}

/// Adds row n of dx to row index[n] of `sum`.
inline void add_rows(const std::vector<std::int32_t>& index, const std::vector<double>& dx,
                     std::size_t columns, std::vector<double>& sum) {
  for (std::size_t n = 0; n < index.size(); ++n)
    for (std::size_t c = 0; c < columns; ++c)
      sum[static_cast<std::size_t>(index[n]) * columns + c] += dx[n * columns + c];
}

}  // namespace strata::kernels::reference
