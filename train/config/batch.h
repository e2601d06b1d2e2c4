// The batch triple: sequences per step = sequences per rank and micro-step x micro-steps x ranks,
// which are virtual ones where they are asked for.
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
  bool virtual_ranks = false;  ///< for messages
};

struct BatchTriple {
  std::int64_t global = 0, micro = 0, accumulation = 0;
  std::string note;     ///< a number of the file that a flag pushed aside
  std::string problem;  ///< "" when the triple holds; else what is wrong and what would work
};

/// DeepSpeed's rules for what is derived from what. Contradictions between flags and file are
/// decided for the flags: the file's global batch is kept when it can be, since it decides the
/// result.
BatchTriple solve_batch(BatchRequest request, std::int64_t world);

}  // namespace strata::train
