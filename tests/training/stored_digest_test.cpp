// A checkpoint says of its state what the run said that saved it.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/test_directory.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/checkpoint/block_writer.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/trainer_state.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"
#include "train/inspect/stored_digests.h"
#include "train/models/hf_config.h"
#include "train/planning/make_plan.h"

namespace strata::tests {
namespace {

constexpr int kWorld = 2;

/// The whole state, put together from what each rank saves; threads of all ranks add to it.
class WholeState {
 public:
  void add(const train::Engine& engine) {
    const std::lock_guard lock(mutex_);
    std::vector<std::byte> buffer;
    const std::int64_t updates = train::step_state(engine).updates;
    for (const zero::StateEntry& entry :
         zero::list_state(engine.programs().units, engine.programs().settings,
                          zero::StateScope::saved, updates)) {
      const auto from = engine.read(entry, 0, entry.elements, buffer);
      if (entry.kind == "scalar") {
        add_scalar(entry, from);
        continue;
      }
      Tensor& tensor = tensors_[{entry.kind, entry.name}];
      tensor.dtype = entry.dtype;
      tensor.shape.clear();
      for (int i = 0; i < entry.shape.ndim(); ++i) tensor.shape.push_back(entry.shape[i]);
      const std::int64_t size = size_of(entry.dtype);
      tensor.data.resize(static_cast<std::size_t>(entry.shape.elements() * size));
      std::copy(from.begin(), from.end(), tensor.data.begin() + entry.first_element * size);
    }
  }

  /// OUTPUT/step-00000001. `left_out`: of the model's tensors, one that is not saved.
  void save(const std::string& output, const std::string& config,
            const std::string& left_out = "") const {
    std::vector<train::TensorSpec> model, optimizer;
    std::vector<const std::vector<std::byte>*> model_data, data;
    for (const auto& [key, tensor] : tensors_) {
      const auto& [kind, name] = key;
      const bool weight = kind == "parameter";
      if (weight && name == left_out) continue;
      (weight ? model : optimizer)
          .push_back({weight ? name : kind + "." + name, tensor.dtype, tensor.shape});
      (weight ? model_data : data).push_back(&tensor.data);
    }
    data.insert(data.begin(), model_data.begin(), model_data.end());
    const train::CheckpointLayout layout(model, optimizer, {.block_bytes = 4096});
    PosixFileSystem files;
    const train::SaveAttempt attempt{"test", 0};
    train::prepare_output_folder(files, output);
    const std::string staging = train::create_staging_folder(files, output, 1, attempt);
    std::vector<std::int64_t> blocks;
    for (std::int64_t block = 0; block < layout.blocks(); ++block) blocks.push_back(block);
    train::BlockWriter writer(files, staging, layout, blocks, train::BlockWriter::Role::creator);
    for (std::size_t t = 0; t < layout.tensors().size(); ++t)
      writer.put(layout.tensors()[t].bytes.file, layout.tensors()[t].bytes.begin, *data[t]);
    const std::vector<train::WholeFile> small{
        {"config.json", config},
        {train::kTrainerStateName, train::to_text({.data_digest = std::string(32, '0'),
                                                   .optimizer = "adamw",
                                                   .state_recipe = "fp32-master",
                                                   .dtype = "fp32",
                                                   .scalars = scalars_})}};
    train::commit_checkpoint(
        files, output, train::make_manifest(layout, 1, {}, small, writer.finish()), small, attempt);
  }

 private:
  struct Tensor {
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> data;
  };

  void add_scalar(const zero::StateEntry& entry, std::span<const std::byte> bytes) {
    if (entry.dtype == DType::i64) {
      std::int64_t number = 0;
      std::memcpy(&number, bytes.data(), sizeof number);
      scalars_.push_back({entry.name, number});
    } else {
      double number = 0;
      std::memcpy(&number, bytes.data(), sizeof number);
      scalars_.push_back({entry.name, number});
    }
  }

  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Tensor> tensors_;  ///< by kind and name
  std::vector<train::TrainerState::Scalar> scalars_;
};

struct Saved {
  WholeState state;
  std::string config;
  std::string said;  ///< by describe_state
};

void train_two_steps(train::ModelConfig model, DType dtype, train::StateRecipe recipe,
                     Saved& saved) {
  saved.config = train::to_hf_config_json(model, "");
  TrainingCase training;
  training.model = train::parse_model_config(saved.config, "config.json");
  training.options = tiny_options(kWorld, 4, 2);
  training.options.dtype = training.options.communication_dtype = dtype;
  training.options.state_recipe = recipe;
  training.world = kWorld;
  on_rank_threads(kWorld, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    train::initialize_weights(engine, 1);
    for (int step = 0; step < 2; ++step)
      engine.train_step(step, [](std::int64_t, int, const train::MicroBatch& batch) {
        for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
          batch.tokens[i] = static_cast<std::int32_t>(i * 13 % 90);
          batch.targets[i] = static_cast<std::int32_t>((i + 1) * 13 % 90);
        }
      });
    const std::string said = train::describe_state(engine);
    if (communicator.rank() == 0) saved.said = said;
    saved.state.add(engine);
    engine.barrier();
    communicator.close();
  });
}

TEST(StoredDigests, AreThoseOfTheRun) {
  struct Case {
    train::ModelConfig model;
    DType dtype;
    train::StateRecipe recipe;
    std::string kind;  ///< that only this one has
  };
  const std::vector<Case> cases{
      {tiny_gpt2(), DType::f32, train::StateRecipe::fp32_master, " moment2 fp32 "},
      {tiny_llama(), DType::bf16, train::StateRecipe::fp32_master, " master fp32 "},
      {tiny_gpt2(), DType::bf16, train::StateRecipe::packed_master, " remainder int16 "},
      {tiny_llama(), DType::bf16, train::StateRecipe::eight_bit, " moment2_scale fp32 "},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.kind);
    const TestDirectory output;
    Saved saved;
    train_two_steps(c.model, c.dtype, c.recipe, saved);
    EXPECT_NE(saved.said.find(c.kind), std::string::npos) << saved.said;
    saved.state.save(output.path(), saved.config);
    PosixFileSystem files;
    const train::TensorFolder folder(files, output / "step-00000001");
    for (const int threads : {1, 3})
      EXPECT_EQ(train::describe_stored_state(folder, threads), saved.said);
  }
}

TEST(StoredDigests, TensorsMustBeThoseOfTheConfiguration) {
  const TestDirectory output;
  Saved saved;
  train_two_steps(tiny_gpt2(), DType::f32, train::StateRecipe::fp32_master, saved);
  PosixFileSystem files;
  const auto refusal = [&](const std::string& config, const std::string& left_out) {
    saved.state.save(output.path(), config, left_out);
    return message_of<DataError>([&] {
      train::describe_stored_state(train::TensorFolder(files, output / "step-00000001"), 1);
    });
  };
  train::ModelConfig model = tiny_gpt2();
  const std::string kBias = "transformer.ln_f.bias";
  EXPECT_NE(refusal(saved.config, kBias).find("misses tensor '" + kBias + "'"), std::string::npos);
  model.layers = 2;
  EXPECT_NE(refusal(train::to_hf_config_json(model, ""), "").find("is none of the model"),
            std::string::npos);
  model.layers = 3;
  model.vocabulary = 101;
  EXPECT_NE(refusal(train::to_hf_config_json(model, ""), "").find("has shape [100, 32]"),
            std::string::npos);
  EXPECT_NE(refusal("{}", "").find("config.json"), std::string::npos);
}

}  // namespace
}  // namespace strata::tests
