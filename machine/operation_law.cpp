#include "machine/operation_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace strata::machine {
namespace {

constexpr std::size_t kParts = 3;
using Parts = std::array<double, kParts>;
/// Squares of relative errors alone make a law too short: half the time costs 1/4, twice the
/// time 1. Over the ratio of both times they cost the same, 1/2. Weights have the same slope as
/// that cost; their ratios are those of the turn before.
constexpr int kTurns = 8;
constexpr double kLeastRatio = 1.0 / 16;

/// Returns the parts of a kind's work over its measured time. A law is right for this kind if their
/// sum, each times the law's part, is 1.
Parts relative_parts(const WorkTime& time) {
  return {1 / time.ns, time.work.flops / time.ns, time.work.bytes / time.ns};
}

/// Sums of products, by which least squares are solved.
struct Normal {
  std::array<Parts, kParts> matrix = {};
  Parts right = {};
};

/// Solves the equations of the parts in `chosen` by elimination; the others are 0. nullopt: they
/// depend on one another.
std::optional<Parts> solve(const Normal& normal, const std::array<bool, kParts>& chosen) {
  std::vector<std::size_t> parts;
  for (std::size_t i = 0; i < kParts; ++i)
    if (chosen[i]) parts.push_back(i);
  const std::size_t n = parts.size();
  std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) rows[i][j] = normal.matrix[parts[i]][parts[j]];
    rows[i][n] = normal.right[parts[i]];
  }
  constexpr double kDependent = 1e-9;  // what is left of a row, as a share of its beginning
  for (std::size_t i = 0; i < n; ++i) {
    const double pivot = rows[i][i];
    if (!(pivot > kDependent * normal.matrix[parts[i]][parts[i]])) return {};
    for (std::size_t k = i + 1; k < n; ++k) {
      const double factor = rows[k][i] / pivot;
      for (std::size_t j = i; j <= n; ++j) rows[k][j] -= factor * rows[i][j];
    }
  }
  Parts solution = {};
  for (std::size_t i = n; i-- > 0;) {
    double rest = rows[i][n];
    for (std::size_t j = i + 1; j < n; ++j) rest -= rows[i][j] * solution[parts[j]];
    solution[parts[i]] = rest / rows[i][i];
  }
  return solution;
}

/// Returns the time of a law over the measured one.
double ratio_of(const Parts& kind, const Parts& solution) {
  double ratio = 0;
  for (std::size_t i = 0; i < kParts; ++i) ratio += kind[i] * solution[i];
  return ratio;
}

/// Returns the law without a negative part that comes closest to all kinds by least squares of
/// relative errors, each times its weight; all parts are 0 if there is none. With three parts each
/// choice of those that are not 0 is tried; the best is what an algorithm for non-negative least
/// squares finds.
Parts best_parts(const std::vector<Parts>& kinds, const std::vector<double>& weights) {
  Normal normal;
  for (std::size_t k = 0; k < kinds.size(); ++k)
    for (std::size_t i = 0; i < kParts; ++i) {
      normal.right[i] += weights[k] * kinds[k][i];
      for (std::size_t j = 0; j < kParts; ++j)
        normal.matrix[i][j] += weights[k] * kinds[k][i] * kinds[k][j];
    }
  Parts best = {};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned choice = 1; choice < 1U << kParts; ++choice) {
    std::array<bool, kParts> chosen = {};
    bool known = true;
    for (std::size_t i = 0; i < kParts; ++i) {
      chosen[i] = (choice >> i & 1U) != 0;
      known = known && (!chosen[i] || normal.matrix[i][i] > 0);
    }
    const auto solution = known ? solve(normal, chosen) : std::nullopt;
    if (!solution || std::ranges::any_of(*solution, [](double part) { return part < 0; })) continue;
    double error = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k)
      error += weights[k] * std::pow(ratio_of(kinds[k], *solution) - 1, 2);
    if (error >= least) continue;
    least = error;
    best = *solution;
  }
  return best;
}

}  // namespace

std::optional<OperationLaw> fit_law(std::span<const WorkTime> measured) {
  std::vector<Parts> kinds;
  for (const WorkTime& time : measured)
    if (time.work.flops > 0 || time.work.bytes > 0) kinds.push_back(relative_parts(time));
  if (kinds.size() < static_cast<std::size_t>(kLeastKindsOfLaw)) return {};
  Parts scale = {};  // FLOPs are many and nanoseconds few, so parts are brought to one size
  for (const Parts& kind : kinds)
    for (std::size_t i = 0; i < kParts; ++i)
      scale[i] += kind[i] / static_cast<double>(kinds.size());
  for (Parts& kind : kinds)
    for (std::size_t i = 0; i < kParts; ++i)
      if (scale[i] > 0) kind[i] /= scale[i];
  std::vector<double> weights(kinds.size(), 1);
  Parts best = best_parts(kinds, weights);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const double ratio = std::max(ratio_of(kinds[k], best), kLeastRatio);
      weights[k] = (ratio + 1) / (2 * ratio * ratio);
    }
    best = best_parts(kinds, weights);
  }
  for (std::size_t i = 0; i < kParts; ++i)
    if (scale[i] > 0) best[i] /= scale[i];
  return OperationLaw{best[0], best[1], best[2]};
}

}  // namespace strata::machine
