// The trainer_state.json of a checkpoint: what a run needs to go on, besides tensors and settings:
// its position in the data, what its numbers depend on, the step's scalars.
//
// Version 1, JSON in this order: version, step, consumed_samples, seed, global_batch,
// sequence_length, shuffle, data_digest, data_tokens, optimizer, state_recipe, dtype, scalars (an
// object; integers and real numbers, which are read back bit for bit).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace strata::train {

inline constexpr const char* kTrainerStateName = "trainer_state.json";

/// The data digest of an imported checkpoint, whose writer did not say what data it had read.
inline constexpr std::string_view kUnknownData = "00000000000000000000000000000000";

struct TrainerState {
  struct Scalar {
    std::string name;  ///< "step_state.loss_scale"
    std::variant<std::int64_t, double> value;
    bool operator==(const Scalar&) const = default;
  };
  std::int64_t step = 0;  ///< number of steps done
  std::int64_t consumed_samples = 0;
  std::int64_t seed = 0;
  std::int64_t global_batch = 1;     ///< samples per step, over all ranks and micro-steps
  std::int64_t sequence_length = 1;  ///< tokens per sample
  bool shuffle = true;
  std::string data_digest;  ///< 32 hexadecimal digits
  std::int64_t data_tokens = 1;
  std::string optimizer;        ///< "adamw", "adam", "lion", "sgd"
  std::string state_recipe;     ///< "fp32-master"
  std::string dtype;            ///< type of the parameters: "fp32", "bf16", "fp16"
  std::vector<Scalar> scalars;  ///< keeps the order given; names differ
  bool operator==(const TrainerState&) const = default;
};

/// Returns the text of the file; equal states give equal texts. Throws InternalError naming the
/// field if parse_trainer_state would refuse the text or not return the same state (a NaN).
std::string to_text(const TrainerState& state);

/// Throws DataError naming `file` and key: not JSON, another version, a key that is unknown,
/// missing or there twice, a wrong type, a number out of range, an unknown optimizer.
TrainerState parse_trainer_state(std::string_view text, const std::string& file);

}  // namespace strata::train
