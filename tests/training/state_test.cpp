// The state listed by step/state_table.h is all that a run needs to go on (design 2.12).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "core/testing/test_directory.h"
#include "runtime/graph/state_names.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/config/make_plan.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/save_checkpoint.h"
#include "train/engine/saved_state.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

constexpr int kWorld = 2;

/// Whole tensors and scalars by name and kind, assembled from what each rank saves.
class SavedState {
 public:
  void save(const train::Engine& engine) {
    const std::lock_guard lock(mutex_);
    for (const step::StateEntry& entry : entries(engine, step::StateScope::saved)) {
      EXPECT_EQ(entry.owner, engine.programs().settings.data_rank());
      EXPECT_EQ(entry.version, train::step_state(engine).updates);
      std::vector<std::byte>& tensor = tensors_[entry.name + " " + entry.kind];
      const std::int64_t size = size_of(entry.dtype);
      tensor.resize(static_cast<std::size_t>(entry.shape.elements() * size));
      const std::span<const std::byte> from = engine.storage(entry);
      std::copy(from.begin(), from.end(), tensor.begin() + entry.window.first * size);
    }
  }

  void restore(const train::Engine& engine) const {
    for (const step::StateEntry& entry : entries(engine, step::StateScope::held)) {
      const std::vector<std::byte>& tensor = tensors_.at(entry.name + " " + entry.kind);
      const std::span<std::byte> to = engine.storage(entry);
      std::memcpy(to.data(), tensor.data() + entry.window.first * size_of(entry.dtype), to.size());
    }
  }

  [[nodiscard]] std::size_t count() const { return tensors_.size(); }

 private:
  static std::vector<step::StateEntry> entries(const train::Engine& engine,
                                               step::StateScope scope) {
    return step::list_state(engine.programs().units, engine.programs().settings, scope,
                            train::step_state(engine).updates);
  }
  std::map<std::string, std::vector<std::byte>> tensors_;
  std::mutex mutex_;
};

TrainingCase case_of(DType dtype, int stage) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(kWorld, 8, 8);
  training.options.accumulation = 2;
  training.options.micro_batch = 2;
  training.options.dtype = training.options.communication_dtype = dtype;
  training.options.zero.stage = stage;
  // The scale overflows at first and then grows every other step, so the scaler's counters matter.
  training.options.loss_scale.initial_scale_power = 18;
  training.options.loss_scale.hysteresis = 2;
  training.options.loss_scale.window_steps = 2;
  training.world = kWorld;
  return training;
}

void fill(std::int64_t step, int micro_step, int rank, const train::MicroBatch& batch) {
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    const std::size_t at = i + static_cast<std::size_t>(step * 31 + micro_step * 7 + rank);
    batch.tokens[i] = static_cast<std::int32_t>(at * 13 % 90);
    batch.targets[i] = static_cast<std::int32_t>((at + 1) * 13 % 90);
  }
}

/// Overwrites everything that is neither state nor zero padding between tensors.
void spoil(const train::Engine& engine) {
  for (const runtime::PersistentValue& value : engine.programs().persistent.values())
    if (value.role == runtime::Role::gradient || value.role == runtime::Role::control ||
        value.role == runtime::Role::input) {
      const std::span<std::byte> bytes = engine.storage(value.name);
      std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
    }
}

struct Outcome {
  std::vector<double> losses;
  std::string state;
};

/// Runs steps [first, last) from `begin`, or from weights of seed 1; leaves the final state in
/// `end`.
Outcome run(const TrainingCase& training, int first, int last, const SavedState* begin,
            SavedState* end) {
  Outcome outcome;
  on_rank_threads(kWorld, [&](comm::Communicator& communicator) {
    train::EngineParts parts;
    parts.programs = build_rank(training, communicator);
    parts.site = std::make_unique<train::CpuSite>(communicator);
    parts.initial_loss_scale = train::initial_loss_scale(training.options);
    train::Engine engine(std::move(parts));
    if (begin == nullptr) {
      train::initialize_weights(engine, 1);
    } else {
      spoil(engine);
      begin->restore(engine);
    }
    std::vector<double> losses;
    for (int step = first; step < last; ++step)
      losses.push_back(engine
                           .train_step(step,
                                       [&](std::int64_t s, int micro_step, const auto& batch) {
                                         fill(s, micro_step, communicator.rank(), batch);
                                       })
                           .loss);
    const std::string state = train::describe_state(engine);
    if (end != nullptr) end->save(engine);
    if (communicator.rank() == 0) outcome = {std::move(losses), state};
    communicator.close();
  });
  return outcome;
}

TEST(ListedState, IsAllThatARunGoesOnFromAtAnotherStage) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (int stage : {0, 2}) {  // stage + 1 reduces in the same order
      const Outcome straight = run(case_of(dtype, stage), 0, 8, nullptr, nullptr);
      if (dtype == DType::f16) {
        EXPECT_EQ(straight.state.find("step_state.updates scalar int64 0"), std::string::npos);
        EXPECT_EQ(straight.state.find("step_state.skipped scalar int64 0"), std::string::npos);
      }
      for (int middle : {4, 5}) {
        const std::string what = std::string(name_of(dtype)) + " stage " + std::to_string(stage) +
                                 " after " + std::to_string(middle);
        SavedState state;
        run(case_of(dtype, stage), 0, middle, nullptr, &state);
        const Outcome rest = run(case_of(dtype, stage + 1), middle, 8, &state, nullptr);
        EXPECT_TRUE(std::equal(rest.losses.begin(), rest.losses.end(),
                               straight.losses.begin() + middle, straight.losses.end()))
            << what;
        EXPECT_EQ(rest.state, straight.state) << what;
      }
    }
}

/// Saves a run's first state; returns the checkpoint's directory.
std::string save_first_weights(const TrainingCase& training, const std::string& output) {
  PosixFileSystem files;
  train::prepare_output_folder(files, output);
  on_engines(training, [&](train::Engine& engine) {
    train::initialize_weights(engine, 1);
    train::save_checkpoint(engine, files, {.output = output, .attempt = {.run_id = "test"}});
  });
  return output + "/" + train::checkpoint_name(0);
}

/// Remainders, 8-bit moments and their scales are state, too.
TEST(ListedState, IsAllThatARunGoesOnFromInEveryFormat) {
  using train::StateRecipe;
  for (const StateRecipe recipe : {StateRecipe::packed_bf16_moments, StateRecipe::eight_bit}) {
    const auto at_stage = [&](int stage) {
      TrainingCase training = case_of(DType::bf16, stage);
      training.options.state_recipe = recipe;
      return training;
    };
    const Outcome straight = run(at_stage(2), 0, 8, nullptr, nullptr);
    SavedState state;
    run(at_stage(2), 0, 4, nullptr, &state);
    const Outcome rest = run(at_stage(3), 4, 8, &state, nullptr);
    EXPECT_TRUE(std::equal(rest.losses.begin(), rest.losses.end(), straight.losses.begin() + 4,
                           straight.losses.end()));
    EXPECT_EQ(rest.state, straight.state);
  }
}

TEST(LoadedWeights, AreTheSameMasterInTwoPartsAsInOne) {
  const TestDirectory directory;
  TrainingCase training = case_of(DType::bf16, 1);
  training.options.steps = 2;
  training.weights = save_first_weights(case_of(DType::f32, 0), directory / "fp32");
  const TrainingResult copy = run_training(training);
  training.options.state_recipe = train::StateRecipe::packed_master;
  const TrainingResult packed = run_training(training);
  EXPECT_EQ(packed.evaluation, copy.evaluation);
  EXPECT_EQ(packed.metrics[1].loss, copy.metrics[1].loss);
  EXPECT_EQ(packed.metrics[1].gradient_norm, copy.metrics[1].gradient_norm);
}

TEST(LoadedWeights, OfSixteenBitsLeaveNoRemainder) {
  const TestDirectory directory;
  TrainingCase training = case_of(DType::bf16, 3);
  training.options.state_recipe = train::StateRecipe::packed_master;
  const std::string saved = save_first_weights(training, directory / "bf16");
  const auto remains = [&](bool load) {
    std::atomic<std::int64_t> nonzero = 0;
    on_engines(training, [&](train::Engine& engine) {
      train::initialize_weights(engine, 1);
      if (load) train::load_weights(engine, train::ModelFiles(saved), *training.model.family);
      for (const step::StateEntry& entry : step::list_state(
               engine.programs().units, engine.programs().settings, step::StateScope::saved, 0))
        if (entry.kind == "remainder")
          for (const std::byte byte : engine.storage(entry)) nonzero += byte != std::byte{0};
    });
    return nonzero.load();
  };
  EXPECT_GT(remains(false), 0);
  EXPECT_EQ(remains(true), 0);
}

/// The name of a weight whose rows are two cells long.
constexpr const char* kWide = "transformer.h.0.mlp.c_fc.weight";

TrainingCase wide_case(DType dtype) {
  TrainingCase training = case_of(dtype, 0);
  training.model.layers = 1;
  training.model.intermediate = 2 * train::kCellElements;
  training.options.global_batch /= kWorld;
  training.world = 1;
  return training;
}

/// Lists what the rank saves without scalars, and with kWide cut into columns of one cell, as ranks
/// along the tensor axis would have them, except that here rows lie apart in the storage.
std::vector<step::StateEntry> in_columns(const train::Engine& engine) {
  std::vector<step::StateEntry> entries;
  for (const step::StateEntry& entry : step::list_state(
           engine.programs().units, engine.programs().settings, step::StateScope::saved, 0)) {
    if (entry.kind == "scalar") continue;
    if (entry.name != kWide) {
      entries.push_back(entry);
      continue;
    }
    const std::int64_t row = entry.shape[1];
    for (std::int64_t column = 0; column < row; column += train::kCellElements) {
      entries.push_back(entry);
      entries.back().window = {.elements = entry.shape[0] * train::kCellElements,
                               .first_column = column,
                               .columns = train::kCellElements,
                               .tensor_columns = row,
                               .storage_columns = row};
      entries.back().storage_element += column;
    }
  }
  return entries;
}

train::Digest digest_of(const train::Engine& engine, const std::vector<step::StateEntry>& entries) {
  train::Digest sum;
  for (const step::StateEntry& entry : entries) sum += train::entry_digest(engine, entry);
  return sum;
}

TEST(EntriesOfColumns, AreDigestedAndLoadedAsRowsAre) {
  const TestDirectory directory;
  PosixFileSystem files;
  const std::string saved = save_first_weights(wide_case(DType::f32), directory / "saved");
  for (const DType dtype : {DType::f32, DType::bf16})  // read in place; converted from fp32
    on_engines(wide_case(dtype), [&](train::Engine& engine) {
      const std::vector<step::StateEntry> columns = in_columns(engine);
      const std::vector<step::StateEntry> rows = step::list_state(
          engine.programs().units, engine.programs().settings, step::StateScope::saved, 0);
      const train::ModelFiles model(saved);
      train::initialize_weights(engine, 1);
      const std::string expected = train::describe_state(engine);
      const auto spoil_wide = [&] {
        for (const step::StateEntry& entry : columns)
          if (entry.name == kWide && entry.kind != "moment1" && entry.kind != "moment2") {
            const std::span<std::byte> bytes = engine.storage(entry);
            std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
          }
        EXPECT_NE(train::describe_state(engine), expected);
      };
      for (const step::StateEntry& entry : rows) {
        if (entry.name != kWide) continue;
        std::vector<step::StateEntry> parts = columns;
        std::erase_if(parts, [&](const step::StateEntry& part) {
          return part.name != kWide || part.kind != entry.kind;
        });
        EXPECT_EQ(parts.size(), 2u);
        EXPECT_EQ(digest_of(engine, parts).hex(), digest_of(engine, {entry}).hex()) << entry.kind;
      }
      spoil_wide();
      for (const step::StateEntry& entry : columns)
        if (entry.kind == "parameter" || entry.kind == "master")
          train::load_entry(engine, model, *wide_case(dtype).model.family, entry);
      EXPECT_EQ(train::describe_state(engine), expected);
      spoil_wide();
      train::load_checkpoint(engine, train::CheckpointReader(files, saved), columns);
      EXPECT_EQ(train::describe_state(engine), expected);
    });
}

TEST(EntriesOfColumns, AreSavedAsRowsAre) {
  on_engines(wide_case(DType::bf16), [&](train::Engine& engine) {
    train::initialize_weights(engine, 1);
    const compile::StepPrograms& set = engine.programs();
    const train::SavedState rows(set), columns(set.units, set.settings, {in_columns(engine)});
    EXPECT_GT(columns.pieces().size(), rows.pieces().size());
    train::ValueCheck check;
    const auto bytes_of = [&](const train::SavedState& state) {
      std::map<std::size_t, std::vector<std::byte>> bytes;  // bytes of each file, in order
      std::vector<std::byte> buffer;
      for (const train::RoutedPiece& routed : state.pieces()) {
        if (state.is_header(routed.piece)) continue;
        const auto piece =
            state.read(engine, train::SaveSource::state, routed.piece, buffer, check);
        bytes[routed.piece.file].insert(bytes[routed.piece.file].end(), piece.begin(), piece.end());
      }
      return bytes;
    };
    EXPECT_TRUE(bytes_of(columns) == bytes_of(rows));
    std::vector<std::byte> buffer;
    std::set<std::string> storages;
    for (const step::StateEntry& entry : in_columns(engine)) storages.insert(entry.storage);
    std::int64_t routed_bytes = 0, all_bytes = 0;
    for (const train::RoutedPiece& routed : columns.pieces())
      if (!columns.is_header(routed.piece)) all_bytes += routed.piece.size_bytes();
    for (const std::string& storage : storages)
      for (const auto& routed : columns.route(storage, 0, engine.storage(storage), check)) {
        const auto same =
            columns.read(engine, train::SaveSource::state, routed.piece, buffer, check);
        EXPECT_TRUE(std::ranges::equal(routed.bytes, same));
        routed_bytes += routed.piece.size_bytes();
      }
    EXPECT_EQ(routed_bytes, all_bytes);
  });
}

TEST(DumpState, ListsEveryTensorAndEveryScalarOnce) {
  TrainingCase training = case_of(DType::f16, 3);
  training.options.loss_scale.initial_scale_power = 24;
  const std::string text = run(training, 0, 3, nullptr, nullptr).state;
  std::vector<std::string> scalars;
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string name, kind, dtype, value; lines >> name >> kind >> dtype >> value;) {
    EXPECT_TRUE(names.insert(name + " " + kind).second) << name << " " << kind;
    if (kind == "scalar")
      scalars.push_back(name + " " + dtype + " " + value);
    else
      EXPECT_TRUE(scalars.empty()) << name << " stands after the scalars";
  }
  // 2^24 overflows three times; a hysteresis of 2 spends the first.
  EXPECT_EQ(scalars, (std::vector<std::string>{
                         "step_state.loss_scale fp64 4194304.0", "step_state.hysteresis int64 1",
                         "step_state.scale_step int64 3", "step_state.last_overflow int64 2",
                         "step_state.updates int64 0", "step_state.skipped int64 3",
                         "step_state.beta1_power fp64 1.0", "step_state.beta2_power fp64 1.0",
                         "step_state.at_floor int64 0"}));
  SavedState saved;
  run(case_of(DType::f16, 0), 0, 0, nullptr, &saved);
  EXPECT_EQ(names.size(), saved.count());
}

}  // namespace
}  // namespace strata::tests
