// Checkpoints under another recipe: what is converted, to the bit, and what is refused.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <map>

#include "core/error.h"
#include "core/file_system.h"
#include "core/testing/test_directory.h"
#include "kernels/math/float16.h"
#include "step/state_table.h"
#include "tests/training/saved_runs.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/engine/step_scalars.h"
#include "train/files/convert.h"

namespace strata::tests {
namespace {

using plan::Home;
using train::CheckpointReader;
using Part = CheckpointReader::Part;

/// The stored bytes of one kind of state, by tensor.
using Bytes = std::map<std::string, std::vector<std::byte>>;

/// Returns what a checkpoint holds, by kind of state, and verifies it on the way.
std::map<std::string, Bytes> stored(const std::string& directory) {
  PosixFileSystem files;
  const CheckpointReader reader(files, directory);
  std::map<std::string, Bytes> all;
  for (const CheckpointReader::Tensor& tensor : reader.tensors()) {
    std::string name = tensor.stored.name, kind = "parameter";
    if (reader.find(Part::model, name) != &tensor) {
      kind = name.substr(0, name.find('.'));
      name = name.substr(kind.size() + 1);
    }
    std::vector<std::byte>& bytes = all[kind][name];
    bytes.resize(static_cast<std::size_t>(tensor.stored.size_bytes));
    const CheckpointReader::Range range{&tensor, 0, tensor.stored.elements(), bytes};
    reader.read({&range, 1});
  }
  return all;
}

Bytes converted(const Bytes& from, DType source, DType target) {
  Bytes all;
  for (const auto& [name, bytes] : from) {
    const std::int64_t count = static_cast<std::int64_t>(bytes.size()) / size_of(source);
    all[name].resize(static_cast<std::size_t>(count * size_of(target)));
    train::convert_elements(source, bytes.data(), target, all[name].data(), count);
  }
  return all;
}

/// Rounds masters to bf16 parameters as the optimizers do.
Bytes parameters_of(const Bytes& masters) {
  Bytes all;
  for (const auto& [name, bytes] : masters) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    for (const float value : values) {
      const auto rounded = std::bit_cast<std::array<std::byte, 2>>(kernels::master_to_bf16(value));
      all[name].insert(all[name].end(), rounded.begin(), rounded.end());
    }
  }
  return all;
}

/// Saves a run of recipe `from`, loads it into a run of recipe `to`, and saves it again.
struct Converted {
  Converted(const Recipe& from, const Recipe& to)
      : first(save_after_steps(case_of(3, 2, Home::device, from), directory / "from")),
        loaded(load(case_of(2, 3, Home::host, to), first, directory / "to")),
        before(stored(first.directory)),
        after(stored(directory / "to/" + train::checkpoint_name(kSteps))) {}

  TestDirectory directory;
  Saved first;
  Loaded loaded;
  std::map<std::string, Bytes> before, after;  ///< state of the two checkpoints, by kind
};

TEST(ConvertedCheckpoint, MakesMastersFromParameters) {
  const Converted c(recipe("fp32"), recipe("fp32-master"));
  const Bytes weights = c.before.at("parameter");
  EXPECT_TRUE(c.after.at("master") == weights);
  EXPECT_TRUE(c.after.at("parameter") == parameters_of(weights));
  EXPECT_TRUE(c.after.at("moment1") == c.before.at("moment1"));
  EXPECT_EQ(c.loaded.notes,
            (std::vector<std::string>{"masters (fp32) are made from stored parameters (F32)",
                                      "parameters (bf16) are made from stored parameters (F32)"}));
}

TEST(ConvertedCheckpoint, MakesParametersFromMasters) {
  const Converted c(recipe("fp32-master"), recipe("fp32"));
  EXPECT_TRUE(c.after.at("parameter") == c.before.at("master"));
  EXPECT_TRUE(c.after.at("moment2") == c.before.at("moment2"));
  EXPECT_EQ(c.loaded.notes,
            std::vector<std::string>{"parameters (fp32) are made from stored masters"});
}

TEST(ConvertedCheckpoint, MakesParametersFromMastersInTwoParts) {
  const Bytes masters =
      Converted(recipe("fp32-master"), recipe("packed-master")).before.at("master");
  const Converted c(recipe("packed-master"), recipe("fp32"));
  EXPECT_TRUE(c.after.at("parameter") == masters);
}

/// Packed and unpacked runs have equal masters, so loading either as the other keeps their bits.
TEST(ConvertedCheckpoint, TakesMastersApartAndPutsThemTogether) {
  const auto run = [](const Recipe& from, const Recipe& to, const std::string& note) {
    const Converted c(from, to);
    EXPECT_EQ(c.loaded.notes, std::vector<std::string>{note});
    return std::pair(c.first.state, c.loaded.state);
  };
  const auto [whole, apart] = run(recipe("fp32-master"), recipe("packed-master"),
                                  "remainders (int16) are made from stored masters");
  const auto [packed, together] =
      run(recipe("packed-master"), recipe("fp32-master"),
          "masters (fp32) are made from stored parameters and remainders");
  EXPECT_EQ(together, whole);
  EXPECT_EQ(apart, packed);
}

/// Others may have rounded parameters otherwise: a remainder belongs to Strata's rounding alone.
TEST(ConvertedCheckpoint, MakesParametersAndRemaindersFromOneMaster) {
  const TestDirectory directory;
  PosixFileSystem files;
  train::prepare_output_folder(files, directory / "out");
  Saved saved;
  on_new_weights(case_of(1, 0, Home::device, recipe("fp32-master")), [&](train::Engine& engine) {
    const compile::StepPrograms& set = engine.programs();
    for (const step::StateEntry& entry :
         step::list_state(set.units, set.settings, step::StateScope::held, 0)) {
      if (entry.kind != "parameter") continue;
      std::vector<std::byte> buffer;
      const auto read = engine.read(entry, 0, entry.window.elements, buffer);
      std::vector<std::byte> other(read.begin(), read.end());
      for (std::size_t i = 0; i < other.size(); i += 2) other[i] ^= std::byte{1};
      engine.write(entry, 0, other);
    }
    train::save_checkpoint(
        engine, files,
        {.output = directory / "out", .step = kSteps, .attempt = {.run_id = "test"}});
    saved.scalars = train::read_scalars(engine);
  });
  saved.directory = directory / "out/" + train::checkpoint_name(kSteps);
  const Bytes masters = stored(saved.directory).at("master");
  load(case_of(1, 0, Home::device, recipe("packed-master")), saved, directory / "to");
  const auto after = stored(directory / "to/" + train::checkpoint_name(kSteps));
  EXPECT_TRUE(after.at("parameter") == parameters_of(masters));
}

TEST(ConvertedCheckpoint, RoundsMomentsToNearestEven) {
  const Converted c(recipe("fp32-master"), recipe("bf16-moments"));
  for (const std::string kind : {"moment1", "moment2"})
    EXPECT_TRUE(c.after.at(kind) == converted(c.before.at(kind), DType::f32, DType::bf16));
  EXPECT_TRUE(c.after.at("master") == c.before.at("master"));
  EXPECT_EQ(c.loaded.notes,
            (std::vector<std::string>{"moment1 was stored as fp32, is kept as bf16",
                                      "moment2 was stored as fp32, is kept as bf16"}));
}

TEST(ConvertedCheckpoint, WidensMoments) {
  const Converted c(recipe("bf16-moments"), recipe("fp32-master"));
  EXPECT_TRUE(c.after.at("moment1") == converted(c.before.at("moment1"), DType::bf16, DType::f32));
}

/// Expects loading to throw a `Fault` whose message has all of `words`.
template <typename Fault>
void expect_refused(const TrainingCase& from, const TrainingCase& to,
                    const std::vector<std::string>& words) {
  const TestDirectory directory;
  const Saved saved = save_after_steps(from, directory.path());
  try {
    load(to, saved);
    ADD_FAILURE() << "loaded";
  } catch (const Fault& error) {
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << word << " in " << error.what();
    EXPECT_NE(std::string(error.what()).find(saved.directory), std::string::npos) << error.what();
  }
}

TEST(RefusedCheckpoint, LacksAMoment) {
  TrainingCase lion = case_of(2, 1, Home::device, recipe("fp32"));
  const TrainingCase adamw = lion;
  lion.options.optimizer.type = train::OptimizerType::lion;
  expect_refused<ConfigError>(lion, adamw,
                              {"cannot resume moment2 of '", "has no tensor 'moment2.",
                               "which this run trains with adamw); go on with the optimizer and "
                               "the --state-recipe or --plan that "
                               "saved it",
                               "start from its weights (--model "});
}

TEST(RefusedCheckpoint, KeepsMomentsThatDoNotConvert) {
  expect_refused<ConfigError>(
      case_of(2, 1, Home::device, recipe("8bit")),
      case_of(2, 1, Home::device, recipe("fp32-master")),
      {"cannot resume moment1 of '", "keeps 'moment1.", "which cannot become fp32 (unit '",
       "the --state-recipe or --plan that saved it"});
}

TEST(RefusedCheckpoint, IsOfAPlanThatTrainedOtherUnits) {
  const TrainingCase all = case_of(2, 1, Home::device, recipe("fp32"));
  TrainingCase fewer = all;
  fewer.change_plan = [](runtime::Plan& plan) { plan.units[1].recipe.trainable = false; };
  const std::string advice = "go on with the optimizer and the --state-recipe or --plan that saved";
  expect_refused<ConfigError>(all, fewer,
                              {"(unit 'layer.0.vectors', which this run does not train)", advice});
  expect_refused<ConfigError>(
      fewer, all,
      {"has no tensor 'moment1.", "(unit 'layer.0.vectors', which this run trains with adamw)",
       advice});
}

TEST(RefusedCheckpoint, IsOfAnotherModel) {
  const TrainingCase from = case_of(2, 3, Home::device, recipe("fp32"));
  TrainingCase to = from;
  to.model.intermediate = 7999;
  expect_refused<DataError>(
      from, to, {"of shape [", ", this run needs [", "use the config.json of this checkpoint"});
  to = from;
  to.model.layers = 2;
  expect_refused<DataError>(from, to,
                            {"has no weights '", "use the config.json of this checkpoint"});
}

}  // namespace
}  // namespace strata::tests
