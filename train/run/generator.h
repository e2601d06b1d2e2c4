// Generates text, one token at a time, recomputing the whole context for each (there is no cache).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/engine/build_programs.h"
#include "train/models/model_family.h"

namespace strata::train {

struct GeneratorOptions {
  std::string model;                      ///< directory with weights
  std::span<const ModelFamily> own = {};  ///< families besides those of this repository
  DType dtype = DType::f32;
  std::int64_t sequence = 0;  ///< most tokens of context; 0: min(the model's, 256)
  double temperature = 0.8;   ///< 0: always the likeliest token
  std::int64_t seed = 1;
  int threads = 1;
};

class Generator {
 public:
  /// Loads the weights; throws DataError or OutOfMemory.
  explicit Generator(const GeneratorOptions& options);
  ~Generator();
  /// Returns the token after `context`, of which the last `sequence` tokens count. The k-th draw of
  /// a seed is always the same random number.
  std::int32_t next(const std::vector<std::int32_t>& context);
  /// Lets next() choose among the first `tokens` of the vocabulary alone.
  void choose_among(std::int64_t tokens) { choices_ = std::min(tokens, config_.vocabulary); }
  [[nodiscard]] const ModelConfig& config() const { return config_; }

 private:
  struct Runtime;
  GeneratorOptions options_;
  ModelConfig config_;
  std::unique_ptr<Runtime> runtime_;
  std::int64_t choices_ = 0;  ///< tokens to choose among
  std::int64_t draws_ = 0;
};

}  // namespace strata::train
