#include "step/optimizer_formats.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "kernels/ops/operation.h"
#include "kernels/ops/step_state.h"
#include "step/optimizer_storage.h"

namespace strata::step {
namespace {

using kernels::Shape;
using kernels::TensorType;

/// True if the operation accepts bf16 parameters with the state of `recipe`, passed as an update
/// passes them.
bool is_taken(const runtime::OptimizerRecipe& recipe) {
  constexpr std::int64_t kElements = 1024;
  const runtime::UnitRecipe unit{DType::bf16, true, recipe};
  kernels::Types inputs;
  if (!keeps_master_copy(unit)) inputs.emplace_back(DType::bf16, Shape{kElements});
  for (const OptimizerState& state : optimizer_states(unit))
    inputs.emplace_back(state.dtype, Shape{kElements / state.elements_per_value});
  inputs.emplace_back(DType::bf16, Shape{kElements});
  inputs.emplace_back(DType::u8, Shape{sizeof(kernels::StepControl)});
  if (recipe.random) inputs.emplace_back(DType::i64, Shape{2});
  kernels::Attributes attributes;
  attributes.set("momentum", recipe.moments);
  try {
    (void)kernels::find_operation(recipe.operation).infer(inputs, attributes);
  } catch (const InvalidArgument&) {
    return false;
  }
  return true;
}

TEST(OptimizerFormats, AreWhatOperationsTake) {
  const std::vector<runtime::OptimizerRecipe> formats = optimizer_formats();
  std::set<std::string> operations;
  for (const runtime::OptimizerRecipe& format : formats) operations.insert(format.operation);
  using runtime::MasterFormat;
  for (const std::string& operation : operations)
    for (const MasterFormat master : {MasterFormat::fp32, MasterFormat::packed, MasterFormat::none})
      for (const int moments : {0, 1, 2})
        for (const DType dtype : {DType::f32, DType::bf16, DType::u8})
          for (const std::int64_t block : {0, 64, 128})
            for (const bool random : {false, true}) {
              // One type makes sense where there are no moments.
              if (moments == 0 && (dtype != DType::f32 || block != 0)) continue;
              const runtime::OptimizerRecipe recipe{operation, master, moments,
                                                    dtype,     block,  random};
              EXPECT_EQ(std::ranges::count(formats, recipe), is_taken(recipe) ? 1 : 0)
                  << operation << " " << name_of(master) << " " << moments << " " << name_of(dtype)
                  << " " << block << " " << random;
            }
}

TEST(OptimizerFormats, AreTheTableOfTheDocument) {
  std::string table;
  for (const runtime::OptimizerRecipe& f : optimizer_formats())
    table +=
        fmt::format("| `\"{}\"` | `\"{}\"` | {} | `\"{}\"` | {} | `{}` |\n", f.operation,
                    name_of(f.master), f.moments, name_of(f.moment_dtype), f.scale_block, f.random);
  const std::string page = read_whole_file(STRATA_PLAN_PAGE, 1 << 20);
  EXPECT_NE(page.find("\n|---|---|---|---|---|---|\n" + table + "\n"), std::string::npos)
      << "docs/formats/plan.md lacks\n"
      << table;
}

}  // namespace
}  // namespace strata::step
