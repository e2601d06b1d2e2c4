// Short runs that save a checkpoint, and runs that begin with it: what tests of checkpoints of all
// ranks are written with.
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

/// A type of parameters and what is kept beside them.
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
/// One of kRecipes.
const Recipe& recipe(std::string_view name);

/// Weights and moments of several blocks each, so that ranks, tensors and blocks have different
/// borders.
TrainingCase case_of(int world, int stage, train::OffloadTarget tier, const Recipe& recipe);

/// As on_engines, with weights of a seed of their own: what is loaded is not right by chance.
void on_new_weights(const TrainingCase& training, const std::function<void(train::Engine&)>& body);

/// Step `number`, with samples that depend on it and on the rank.
void step(train::Engine& engine, std::int64_t number);

/// Steps before a save.
inline constexpr int kSteps = 2;

struct Saved {
  std::string directory;
  std::string state;      ///< describe_state when it was saved
  std::string continued;  ///< and after one more step
  std::vector<train::TrainerState::Scalar> scalars;
  std::vector<train::SaveResult> results;  ///< by rank
};

/// Some steps, a save, one step more.
Saved save_after_steps(const TrainingCase& training, const std::string& output);

struct Loaded {
  std::string before, state, continued;  ///< describe_state: new, loaded, one step later
  std::vector<std::string> notes;
};

/// What rank 0 sees when all ranks load it, save it again where `save_again` names a folder, and
/// take one step.
Loaded load(const TrainingCase& training, const Saved& saved, const std::string& save_again = "");

}  // namespace strata::tests
