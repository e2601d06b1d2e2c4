#include "train/accounting/model_flops.h"

#include "train/models/model_family.h"

namespace strata::train {

TokenFlops flops_per_token(const ModelConfig& model, std::int64_t sequence) {
  // Each weight takes a multiplication and an addition forward, and twice that backward.
  constexpr double kPerWeight = 6;
  const auto layers = static_cast<double>(model.layers);
  const auto hidden = static_cast<double>(model.hidden);
  const auto head_size = static_cast<double>(model.head_size);
  const auto query_heads = static_cast<double>(model.heads);
  const auto kv_heads = static_cast<double>(model.kv_heads);
  const double mlp_matrices = model.family->mlp_matrices;
  // LLM.Q writes `hidden` for the width of the output projection; in all models that it publishes,
  // the heads' widths add up to that.
  const double widths = mlp_matrices * static_cast<double>(model.intermediate) +
                        head_size * query_heads + head_size * (query_heads + 2 * kv_heads);
  TokenFlops flops;
  flops.blocks = kPerWeight * layers * hidden * widths;
  flops.head = kPerWeight * static_cast<double>(model.vocabulary) * hidden;
  flops.attention = kPerWeight * layers * head_size * query_heads * static_cast<double>(sequence);
  return flops;
}

double ideal_seconds_per_token(const TokenFlops& flops, const ChargedPeaks& peaks) {
  return flops.blocks / peaks.products + (flops.head + flops.attention) / peaks.model;
}

double model_flops_utilization(const TokenFlops& flops, const ChargedPeaks& peaks,
                               double tokens_per_second_per_device) {
  return ideal_seconds_per_token(flops, peaks) * tokens_per_second_per_device;
}

std::optional<double> model_flops_utilization(const TokenFlops& flops, machine::Figure peak,
                                              double tokens_per_second_per_device) {
  if (!peak.known() || peak.source == machine::Source::assumed) return std::nullopt;
  return model_flops_utilization(flops, ChargedPeaks{peak, peak}, tokens_per_second_per_device);
}

}  // namespace strata::train
