// Counts the arithmetic that a model needs for one token, and which share of a device's peak a
// training speed is. Counts as LLM.Q does for its "speed of light" (SOL): matrix products and
// causal attention, forward and backward, without recomputation, norms, look-ups or optimizer.
// Recomputing therefore never raises the share.
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

/// Peak rates, FLOP/s, with which the parts' times are computed.
struct ChargedPeaks {
  double products = 0;  ///< rate in the type in which blocks multiply
  double model = 0;     ///< rate in the model's type, for head and attention
};

/// Seconds that one token takes on a device that always reaches its peak.
double ideal_seconds_per_token(const TokenFlops& flops, const ChargedPeaks& peaks);

/// Model FLOPs utilization, a fraction: ideal time over measured time.
double model_flops_utilization(const TokenFlops& flops, const ChargedPeaks& peaks,
                               double tokens_per_second_per_device);

/// Utilization of a run in one type with the peak `peak`; nullopt if that is unknown.
std::optional<double> model_flops_utilization(const TokenFlops& flops, machine::Figure peak,
                                              double tokens_per_second_per_device);

}  // namespace strata::train
