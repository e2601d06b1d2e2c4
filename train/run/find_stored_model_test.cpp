#include "train/run/find_stored_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/testing/test_directory.h"
#include "train/config/testing/settled_options.h"
#include "train/files/safetensors_header.h"
#include "train/run/earlier_defaults.h"

namespace strata::train {
namespace {

std::string weights(DType small, DType large) {
  const std::vector<TensorSpec> specs = {{"norm", small, {2}}, {"matrix", large, {4, 4}}};
  std::string file = make_safetensors_header(specs, {});
  for (const TensorSpec& spec : specs)
    file.append(static_cast<std::size_t>(spec.shape.size() == 1 ? 2 : 16) *
                    static_cast<std::size_t>(size_of(spec.dtype)),
                '\0');
  return file;
}

TEST(FindStoredModel, TheTypeIsThatOfTheConfigurationElseOfTheWeights) {
  const TestDirectory folder;
  const std::string model = folder / "gpt";
  std::filesystem::create_directory(model);
  EXPECT_FALSE(find_stored_model(model, model).has_weights);
  folder.file("gpt/model.safetensors", weights(DType::f32, DType::bf16));
  const auto type = [&](const std::string& config) {
    folder.file("gpt/config.json", config);
    const StoredModel stored = find_stored_model(model + "/", model);
    EXPECT_TRUE(stored.has_weights);
    EXPECT_EQ(stored.name, "gpt");
    return stored.dtype;
  };
  EXPECT_EQ(type(R"({"torch_dtype": "float16"})"), DType::f16);
  EXPECT_EQ(type(R"({"dtype": "torch.float32", "torch_dtype": "float16"})"), DType::f32);
  EXPECT_EQ(type(R"({"dtype": "float8_e4m3fn"})"), DType::bf16);
  EXPECT_EQ(type("{}"), DType::bf16);
}

TEST(EarlierDefaults, ARunFromBeforeThemGoesOnAsItWas) {
  const StoredModel stored{true, "gpt", DType::bf16};
  const ResolvedConfig config = resolve(flags({}), 1, small_model(), stored);
  TrainerState saved;
  saved.dtype = "fp32";
  saved.data_digest = "0123456789abcdef0123456789abcdef";
  TrainOptions options = config.options;
  EXPECT_EQ(
      keep_earlier_defaults(config, "", saved, options),
      "the checkpoint is of a run with other defaults, which are kept: steps 100, dtype fp32, "
      "optimizer.learning_rate 0.001, scheduler.type constant");
  EXPECT_EQ(options.steps, 100);
  EXPECT_EQ(options.epochs, 0);
  EXPECT_EQ(options.dtype, DType::f32);
  EXPECT_EQ(options.communication_dtype, DType::f32);
  EXPECT_EQ(options.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(options.scheduler.type, kernels::ScheduleKind::constant);
  EXPECT_EQ(options.output, "gpt-tuned");
  // An option given at both times keeps its value.
  const ResolvedConfig said =
      resolve(flags({"--lr", "3e-4", "--steps", "7", "--dtype", "bf16", "--scheduler", "cosine"}),
              1, small_model(), stored);
  options = said.options;
  EXPECT_EQ(keep_earlier_defaults(said, "", saved, options), "");
  EXPECT_EQ(options.optimizer.learning_rate, 3e-4);
}

TEST(EarlierDefaults, ARunWithDefaultsOfStoredModelsKeepsThem) {
  const ResolvedConfig config = resolve(flags({}), 1, small_model(), {true, "gpt", DType::bf16});
  TrainOptions options = config.options;
  EXPECT_EQ(keep_earlier_defaults(config, kStoredModelDefaults, {}, options), "");
  EXPECT_EQ(options.optimizer.learning_rate, 2e-5);
}

}  // namespace
}  // namespace strata::train
