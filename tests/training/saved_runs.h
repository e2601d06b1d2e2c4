// Short runs that save a checkpoint, and runs that load it, for tests of checkpoints that all ranks
// write.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/training/ranks.h"
#include "train/checkpoint/trainer_state.h"
#include "train/engine/engine.h"
#include "train/engine/save_checkpoint.h"

namespace strata::tests {

/// A type of parameters and the optimizer state kept beside them.
struct Recipe {
  const char* name;
  DType dtype;
  train::StateRecipe state;
};
inline constexpr std::array kRecipes{
    Recipe{"fp32", DType::f32, train::StateRecipe::fp32_master},
    Recipe{"fp32-master", DType::bf16, train::StateRecipe::fp32_master},
    Recipe{"packed-master", DType::bf16, train::StateRecipe::packed_master},
    Recipe{"bf16-moments", DType::bf16, train::StateRecipe::bf16_moments},
    Recipe{"8bit", DType::bf16, train::StateRecipe::eight_bit}};
/// Returns the entry of kRecipes with this name.
const Recipe& recipe(std::string_view name);

/// A model whose weights and moments take several blocks each, so that borders of ranks, tensors
/// and blocks differ.
TrainingCase case_of(int world, int stage, plan::Home tier, const Recipe& recipe);

/// Runs `body` as on_engines does, with weights of another seed, so that loading changes them.
void on_new_weights(const TrainingCase& training, const std::function<void(train::Engine&)>& body);

/// Runs step `number`, with samples that depend on it and on the rank.
void step(train::Engine& engine, std::int64_t number);

/// Steps before the save.
inline constexpr int kSteps = 2;

struct Saved {
  std::string directory;
  std::string state;      ///< describe_state when it was saved
  std::string continued;  ///< describe_state one step later
  std::vector<train::TrainerState::Scalar> scalars;
  std::vector<train::SaveResult> results;  ///< one per rank
};

/// Runs kSteps steps, saves, and runs one step more.
Saved save_after_steps(const TrainingCase& training, const std::string& output);

struct Loaded {
  std::string before, state, continued;  ///< describe_state: new, loaded, one step later
  std::vector<std::string> notes;
};

/// Loads a checkpoint on all ranks, saves it again if `save_again` names a folder, and runs one
/// step. Returns what rank 0 sees.
Loaded load(const TrainingCase& training, const Saved& saved, const std::string& save_again = "");

}  // namespace strata::tests
