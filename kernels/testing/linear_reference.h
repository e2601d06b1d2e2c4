// Linear layers in plain fp64, for tests.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::kernels::reference {

using Values = std::vector<double>;

/// Returns C[m,n] = op(A) op(B), all without gaps; a transposed A is [k,m], a transposed B [n,k].
inline Values matmul(const Values& a, bool a_transposed, const Values& b, bool b_transposed,
                     std::int64_t m, std::int64_t n, std::int64_t k) {
  Values c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p) {
      const double left = a[static_cast<std::size_t>(a_transposed ? p * m + i : i * k + p)];
      for (std::int64_t j = 0; j < n; ++j)
        c[static_cast<std::size_t>(i * n + j)] +=
            left * b[static_cast<std::size_t>(b_transposed ? j * k + p : p * n + j)];
    }
  return c;
}

/// Returns y [N,M] = x [N,K] W^T + bias. W is [M,K], or [K,M] if `transposed`; bias may be empty.
inline Values linear(const Values& x, const Values& w, const Values& bias, bool transposed,
                     std::int64_t n, std::int64_t m, std::int64_t k) {
  Values y = matmul(x, false, w, !transposed, n, m, k);
  if (!bias.empty())
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % static_cast<std::size_t>(m)];
  return y;
}

inline Values linear_backward_input(const Values& dy, const Values& w, bool transposed,
                                    std::int64_t n, std::int64_t m, std::int64_t k) {
  return matmul(dy, false, w, transposed, n, k, m);
}

inline Values linear_backward_weight(const Values& dy, const Values& x, bool transposed,
                                     std::int64_t n, std::int64_t m, std::int64_t k) {
  return transposed ? matmul(x, true, dy, false, k, m, n) : matmul(dy, true, x, false, m, k, n);
}

inline Values linear_backward_bias(const Values& dy, std::int64_t n, std::int64_t m) {
  Values sums(static_cast<std::size_t>(m));
  for (std::int64_t i = 0; i < n * m; ++i)
    sums[static_cast<std::size_t>(i % m)] += dy[static_cast<std::size_t>(i)];
  return sums;
}

}  // namespace strata::kernels::reference
