// Text from a model: one token at a time, rerunning the whole context (there is no cache yet).
#pragma once

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
  std::int64_t sequence = 0;  ///< longest context that is kept, tokens; 0: min(model's, 256)
  double temperature = 0.8;   ///< 0: the likeliest token
  std::int64_t seed = 1;
  int threads = 1;
};

class Generator {
 public:
  /// Loads the weights; throws DataError or OutOfMemory.
  explicit Generator(const GeneratorOptions& options);
  ~Generator();
  /// The token after `context` (its last `sequence` tokens count). Draw k of a seed is always the
  /// same number.
  std::int32_t next(const std::vector<std::int32_t>& context);
  [[nodiscard]] const ModelConfig& config() const { return config_; }

 private:
  struct Runtime;
  GeneratorOptions options_;
  ModelConfig config_;
  std::unique_ptr<Runtime> runtime_;
  std::int64_t draws_ = 0;
};

}  // namespace strata::train
