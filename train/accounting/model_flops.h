// The arithmetic a model needs for one token, and which share of a device's peak a training speed
// is. Counted as LLM.Q counts its "speed of light" (SOL): matrix products and causal attention,
// forward and backward; no recomputation, norms, look-ups or optimizer. Recomputing work that was
// already done therefore never raises the figure.
#pragma once

#include <cstdint>
#include <optional>

#include "machine/figure.h"
#include "train/models/model_config.h"

namespace strata::train {

/// FLOPs of one token, forward and backward.
struct TokenFlops {
  double blocks = 0;     ///< the blocks' matrix products
  double head = 0;       ///< the product with the output embedding, tied or not
  double attention = 0;  ///< scores and their product with the values, halved for causality
  [[nodiscard]] double total() const { return blocks + head + attention; }
};

/// `sequence`: tokens per sample. The vocabulary counts unpadded.
TokenFlops flops_per_token(const ModelConfig& model, std::int64_t sequence);

/// Peak rates, FLOP/s, at which the parts are charged.
struct ChargedPeaks {
  double products = 0;  ///< the type in which blocks multiply
  double model = 0;     ///< the model's type: head and attention
};

/// Seconds that one token takes on a device that always reaches its peak.
double ideal_seconds_per_token(const TokenFlops& flops, const ChargedPeaks& peaks);

/// Model FLOPs utilization, a fraction: ideal time over time taken.
double model_flops_utilization(const TokenFlops& flops, const ChargedPeaks& peaks,
                               double tokens_per_second_per_device);

/// The same for a run in one type, whose peak is `peak`; nullopt where nobody published or measured
/// that.
std::optional<double> model_flops_utilization(const TokenFlops& flops, machine::Figure peak,
                                              double tokens_per_second_per_device);

}  // namespace strata::train
