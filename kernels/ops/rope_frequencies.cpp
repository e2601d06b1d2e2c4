// Frequencies of rotary embeddings in fp64, computed as in transformers' modeling_rope_utils:
// models were trained with these numbers.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"
#include "kernels/ops/rope.h"

namespace strata::kernels {
namespace {

/// Llama 3.1: divides frequencies of long wavelengths by `factor`, keeps others, blends between.
void scale_llama3(std::span<double> frequencies, const Attributes& attributes) {
  const double factor = attributes.real("factor"), low = attributes.real("low"),
               high = attributes.real("high"), original = attributes.real("original");
  for (double& frequency : frequencies) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength > original / low) {
      frequency /= factor;
    } else if (wavelength >= original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

/// YaRN (Peng et al., 2023): blends over the pairs from kept to divided frequencies.
void scale_yarn(std::span<double> frequencies, const Attributes& attributes) {
  const double factor = attributes.real("factor"), original = attributes.real("original"),
               theta = attributes.real("theta"), dimensions = attributes.real("head_size");
  const auto pair_of = [&](double rotations) {
    return dimensions * std::log(original / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = pair_of(attributes.real("beta_fast", 32));
  double high = pair_of(attributes.real("beta_slow", 1));
  if (attributes.integer("truncate", 1) != 0) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dimensions - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / factor * ramp + frequencies[i] * (1 - ramp);
  }
}

double yarn_attention_factor(const Attributes& attributes) {
  const double given = attributes.real("attention_factor", 0), factor = attributes.real("factor");
  if (given != 0) return given;
  return factor <= 1 ? 1 : 0.1 * std::log(factor) + 1;
}

}  // namespace

double rope_frequencies(const Attributes& attributes, std::span<double> frequencies) {
  const double head_size = attributes.real("head_size"), theta = attributes.real("theta");
  STRATA_CHECK(2 * static_cast<double>(frequencies.size()) == head_size, head_size);
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(theta, -2 * static_cast<double>(i) / head_size);
  switch (static_cast<RopeScalingKind>(attributes.integer("scaling", 0))) {
    case RopeScalingKind::none:
      return 1;
    case RopeScalingKind::linear:
      for (double& frequency : frequencies) frequency /= attributes.real("factor");
      return 1;
    case RopeScalingKind::llama3:
      scale_llama3(frequencies, attributes);
      return 1;
    case RopeScalingKind::yarn:
      scale_yarn(frequencies, attributes);
      return yarn_attention_factor(attributes);
  }
  STRATA_CHECK(false, "unknown scaling of rotary embeddings");
}

}  // namespace strata::kernels
