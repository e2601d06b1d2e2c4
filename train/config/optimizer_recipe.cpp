#include "train/config/optimizer_recipe.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/ops/adamw_8bit.h"
#include "step/optimizer_formats.h"

namespace strata::train {
namespace {

struct Family {
  const char* operation;
  int moments;
};

Family family_of(const OptimizerOptions& optimizer) {
  switch (optimizer.type) {
    case OptimizerType::sgd:
      return {"sgd", optimizer.momentum > 0 ? 1 : 0};
    case OptimizerType::lion:
      return {"lion", 1};
    case OptimizerType::adamw:
    case OptimizerType::adam:
      break;
  }
  return {"adamw", 2};
}

runtime::OptimizerRecipe recipe_of(const Family& family, StateRecipe state) {
  runtime::OptimizerRecipe recipe;
  recipe.operation = family.operation;
  recipe.moments = family.moments;
  if (is_packed(state)) {
    recipe.operation += "_packed";
    recipe.master = runtime::MasterFormat::packed;
  }
  if (has_bf16_moments(state)) {
    recipe.moment_dtype = DType::bf16;
    recipe.random = true;
  }
  if (state == StateRecipe::bf16_sr) {
    recipe.operation += "_bf16";
    recipe.master = runtime::MasterFormat::none;
  }
  if (state == StateRecipe::eight_bit) {
    recipe.operation += "_8bit";
    recipe.moment_dtype = DType::u8;
    recipe.scale_block = kernels::kQuantizedBlock;
  }
  return recipe;
}

}  // namespace

runtime::OptimizerRecipe optimizer_recipe(const TrainOptions& options) {
  return recipe_of(family_of(options.optimizer), options.state_recipe);
}

std::string missing_for_recipe(const TrainOptions& options) {
  const std::vector<runtime::OptimizerRecipe> formats = step::optimizer_formats();
  const auto has_recipe = [&](const OptimizerOptions& optimizer) {
    return std::ranges::find(formats, recipe_of(family_of(optimizer), options.state_recipe)) !=
           formats.end();
  };
  if (has_recipe(options.optimizer)) return "";
  std::vector<std::string> names;
  for (const auto& [type, name] :
       {std::pair{OptimizerType::adamw, "AdamW"}, std::pair{OptimizerType::adam, "Adam"},
        std::pair{OptimizerType::lion, "Lion"}, std::pair{OptimizerType::sgd, "SGD"}})
    if (has_recipe({.type = type})) names.emplace_back(name);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

}  // namespace strata::train
