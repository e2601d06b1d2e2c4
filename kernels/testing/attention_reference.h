// Causal attention in fp64 with all probabilities at a time, as the formula says.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/math/philox.h"

namespace strata::kernels::reference {

using Doubles = std::vector<double>;

struct AttentionSizes {
  std::size_t batch, sequence, heads, kv_heads, head_size;
  double scale;
  double p = 0;
  std::int64_t key = 0;
  std::vector<std::int64_t> rng = {};

  /// Returns the index of (sample, position, head, 0) in [N, count, D].
  [[nodiscard]] std::size_t at(std::size_t b, std::size_t t, std::size_t h,
                               std::size_t count) const {
    return ((b * sequence + t) * count + h) * head_size;
  }
};

/// One row of probabilities and its dropout factors.
struct AttentionRow {
  Doubles probability, factor;
  double lse;
};

inline AttentionRow attention_row(const AttentionSizes& s, const Doubles& q, const Doubles& k,
                                  std::size_t b, std::size_t h, std::size_t t) {
  AttentionRow row{Doubles(t + 1), Doubles(t + 1, 1.0), 0};
  const std::size_t kv = h / (s.heads / s.kv_heads), from = s.at(b, t, h, s.heads);
  double largest = -INFINITY, sum = 0;
  for (std::size_t j = 0; j <= t; ++j) {
    double score = 0;
    for (std::size_t d = 0; d < s.head_size; ++d)
      score += q[from + d] * k[s.at(b, j, kv, s.kv_heads) + d];
    row.probability[j] = score * s.scale;
    largest = std::fmax(largest, row.probability[j]);
  }
  for (double& p : row.probability) sum += std::exp(p - largest);
  row.lse = largest + std::log(sum);
  for (double& p : row.probability) p = std::exp(p - row.lse);
  if (s.p == 0) return row;
  const RandomSource source(s.rng[0], s.rng[1], s.rng[2 + b], s.key);
  const std::size_t first = (h * s.sequence + t) * ((s.sequence + 3) / 4 * 4);
  for (std::size_t j = 0; j <= t; ++j)
    row.factor[j] = source.word(first + j) >= s.p * 0x1p32 ? 1 / (1 - s.p) : 0;
  return row;
}

struct Attention {
  Doubles o, lse;
};

inline Attention attention(const AttentionSizes& s, const Doubles& q, const Doubles& k,
                           const Doubles& v) {
  Attention result{Doubles(q.size()), Doubles(s.batch * s.heads * s.sequence)};
  for (std::size_t b = 0; b < s.batch; ++b)
    for (std::size_t h = 0; h < s.heads; ++h)
      for (std::size_t t = 0; t < s.sequence; ++t) {
        const AttentionRow row = attention_row(s, q, k, b, h, t);
        const std::size_t kv = h / (s.heads / s.kv_heads);
        result.lse[(b * s.heads + h) * s.sequence + t] = row.lse;
        for (std::size_t j = 0; j <= t; ++j)
          for (std::size_t d = 0; d < s.head_size; ++d)
            result.o[s.at(b, t, h, s.heads) + d] +=
                row.probability[j] * row.factor[j] * v[s.at(b, j, kv, s.kv_heads) + d];
      }
  return result;
}

struct AttentionGradients {
  Doubles dq, dk, dv;
};

/// Adds what query (b, h, t) contributes to the gradients.
inline void attention_row_backward(const AttentionSizes& s, const Doubles& dout, const Doubles& q,
                                   const Doubles& k, const Doubles& v, std::size_t b, std::size_t h,
                                   std::size_t t, AttentionGradients& g) {
  const AttentionRow row = attention_row(s, q, k, b, h, t);
  const std::size_t kv = h / (s.heads / s.kv_heads), from = s.at(b, t, h, s.heads);
  Doubles dp(t + 1);
  double mean = 0;
  for (std::size_t j = 0; j <= t; ++j) {
    const std::size_t to = s.at(b, j, kv, s.kv_heads);
    for (std::size_t d = 0; d < s.head_size; ++d) {
      dp[j] += dout[from + d] * v[to + d] * row.factor[j];
      g.dv[to + d] += row.probability[j] * row.factor[j] * dout[from + d];
    }
    mean += row.probability[j] * dp[j];
  }
  for (std::size_t j = 0; j <= t; ++j) {
    const std::size_t to = s.at(b, j, kv, s.kv_heads);
    const double ds = row.probability[j] * (dp[j] - mean) * s.scale;
    for (std::size_t d = 0; d < s.head_size; ++d) {
      g.dq[from + d] += ds * k[to + d];
      g.dk[to + d] += ds * q[from + d];
    }
  }
}

inline AttentionGradients attention_backward(const AttentionSizes& s, const Doubles& dout,
                                             const Doubles& q, const Doubles& k, const Doubles& v) {
  AttentionGradients g{Doubles(q.size()), Doubles(k.size()), Doubles(v.size())};
  for (std::size_t b = 0; b < s.batch; ++b)
    for (std::size_t h = 0; h < s.heads; ++h)
      for (std::size_t t = 0; t < s.sequence; ++t)
        attention_row_backward(s, dout, q, k, v, b, h, t, g);
  return g;
}

}  // namespace strata::kernels::reference
