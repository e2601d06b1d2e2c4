// Solves the batch triple: sequences per step = sequences per rank and micro-step x micro-steps x
// ranks. With virtual ranks these count instead of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace strata::train {

struct BatchNumber {
  std::optional<std::int64_t> value;  ///< positive
  bool from_flag = false;
};

struct BatchRequest {
  BatchNumber global;          ///< train_batch_size
  BatchNumber micro;           ///< train_micro_batch_size_per_gpu
  BatchNumber accumulation;    ///< gradient_accumulation_steps
  bool virtual_ranks = false;  ///< words messages accordingly
};

struct BatchTriple {
  std::int64_t global = 0, micro = 0, accumulation = 0;
  std::string note;     ///< says which number of the file gives way to a flag
  std::string problem;  ///< "" if the triple holds; else what is wrong and what works
};

/// Derives missing numbers by DeepSpeed's rules. Where flags contradict the file, the flags win; of
/// the file's numbers the global batch is kept if possible, since it decides the result.
BatchTriple solve_batch(BatchRequest request, std::int64_t world);

}  // namespace strata::train
