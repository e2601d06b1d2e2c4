// Checkpoints that all ranks write: what comes back under another world, stage, tier or recipe,
// what each rank writes, and what a failing rank means for the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/test_directory.h"
#include "core/testing/failing_file_system.h"
#include "kernels/float16.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/save_checkpoint.h"
#include "train/engine/saved_state.h"
#include "train/engine/state_digest.h"
#include "train/engine/step_scalars.h"
#include "train/engine/weights.h"
#include "train/files/convert.h"

namespace strata::tests {
namespace {

using train::CheckpointReader;
using train::OffloadTarget;
using train::StateRecipe;
using Part = CheckpointReader::Part;

/// A type of parameters and what is kept beside them.
struct Recipe {
  const char* name;
  DType dtype;
  StateRecipe state;
};
constexpr std::array kRecipes{Recipe{"fp32", DType::f32, StateRecipe::fp32_master},
                              Recipe{"fp32-master", DType::bf16, StateRecipe::fp32_master},
                              Recipe{"packed-master", DType::bf16, StateRecipe::packed_master},
                              Recipe{"bf16-moments", DType::bf16, StateRecipe::bf16_moments},
                              Recipe{"8bit", DType::bf16, StateRecipe::eight_bit}};
constexpr std::array kWorlds{1, 2, 3, 4, 8};
constexpr std::array kTiers{OffloadTarget::none, OffloadTarget::cpu, OffloadTarget::nvme};
constexpr int kSteps = 2;

const Recipe& recipe(std::string_view name) {
  return *std::ranges::find(kRecipes, name, &Recipe::name);
}

/// Weights and moments of several blocks each, so that ranks, tensors and blocks have different
/// borders.
TrainingCase case_of(int world, int stage, OffloadTarget tier, const Recipe& recipe) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.layers = 1;
  training.model.intermediate = 8000;
  training.options = tiny_options(world, world, kSteps);
  training.options.dtype = training.options.communication_dtype = recipe.dtype;
  training.options.state_recipe = recipe.state;
  training.options.zero.stage = stage;
  training.options.offload.optimizer = tier;
  training.world = world;
  return training;
}

/// On every rank. An engine of another seed, so that nothing is right by chance, loads first where
/// there is something to load.
void on_engines(const TrainingCase& training, const std::function<void(train::Engine&)>& body) {
  on_rank_threads(training.world, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    train::initialize_weights(engine, 7);
    body(engine);
    communicator.close();
  });
}

void step(train::Engine& engine, std::int64_t number) {
  const int rank = engine.communicator().rank();
  engine.train_step(number, [&](std::int64_t s, int, const train::MicroBatch& batch) {
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      const std::size_t at = i + static_cast<std::size_t>(s * 31 + rank * 7);
      batch.tokens[i] = static_cast<std::int32_t>(at * 13 % 90);
      batch.targets[i] = static_cast<std::int32_t>((at + 1) * 13 % 90);
    }
  });
}

struct Saved {
  std::string directory;
  std::string state;      ///< describe_state when it was saved
  std::string continued;  ///< and after one more step
  std::vector<train::TrainerState::Scalar> scalars;
  std::vector<train::SaveResult> results;  ///< by rank
};

/// Some steps, a save, one step more.
Saved save_after_steps(const TrainingCase& training, const std::string& output) {
  PosixFileSystem files;
  train::prepare_output_folder(files, output);
  Saved saved;
  saved.results.resize(static_cast<std::size_t>(training.world));
  on_engines(training, [&](train::Engine& engine) {
    for (int s = 0; s < kSteps; ++s) step(engine, s);
    const std::string state = train::describe_state(engine);
    const train::SaveResult result = train::save_checkpoint(
        engine, files, {.output = output, .step = kSteps, .attempt = {.run_id = "test"}});
    saved.results[static_cast<std::size_t>(engine.communicator().rank())] = result;
    EXPECT_EQ(train::describe_state(engine), state) << "saving changed it";
    const auto scalars = train::read_scalars(engine);
    step(engine, kSteps);
    const std::string continued = train::describe_state(engine);
    if (engine.communicator().rank() != 0) return;
    saved.state = state;
    saved.continued = continued;
    saved.scalars = scalars;
  });
  saved.directory = output + "/" + train::checkpoint_name(kSteps);
  return saved;
}

struct Loaded {
  std::string before, state, continued;
  std::vector<std::string> notes;
};

Loaded load(const TrainingCase& training, const Saved& saved, const std::string& save_again = "") {
  PosixFileSystem files;
  if (!save_again.empty()) train::prepare_output_folder(files, save_again);
  Loaded loaded;
  on_engines(training, [&](train::Engine& engine) {
    Loaded mine;
    mine.before = train::describe_state(engine);
    const CheckpointReader reader(files, saved.directory);
    mine.notes = train::load_checkpoint(engine, reader);
    train::write_scalars(engine, saved.scalars, "the test's scalars");
    mine.state = train::describe_state(engine);
    if (!save_again.empty())
      train::save_checkpoint(engine, files,
                             {.output = save_again, .step = kSteps, .attempt = {.run_id = "test"}});
    step(engine, kSteps);
    mine.continued = train::describe_state(engine);
    if (engine.communicator().rank() == 0) loaded = std::move(mine);
  });
  return loaded;
}

/// Choices by number, one per axis; every pair of choices of two axes is in one of them.
std::vector<std::vector<int>> cover_pairs(const std::vector<int>& axes) {
  std::set<std::array<int, 4>> missing;
  for (int a = 0; a < static_cast<int>(axes.size()); ++a)
    for (int b = a + 1; b < static_cast<int>(axes.size()); ++b)
      for (int i = 0; i < axes[static_cast<std::size_t>(a)]; ++i)
        for (int j = 0; j < axes[static_cast<std::size_t>(b)]; ++j) missing.insert({a, b, i, j});
  const auto covered = [&](const std::vector<int>& row) {
    std::vector<std::array<int, 4>> pairs;
    for (int a = 0; a < static_cast<int>(axes.size()); ++a)
      for (int b = a + 1; b < static_cast<int>(axes.size()); ++b)
        if (const std::array pair{a, b, row[static_cast<std::size_t>(a)],
                                  row[static_cast<std::size_t>(b)]};
            missing.contains(pair))
          pairs.push_back(pair);
    return pairs;
  };
  std::mt19937 random(1);
  std::vector<std::vector<int>> rows;
  while (!missing.empty()) {
    std::vector<int> best;
    for (int attempt = 0; attempt < 200; ++attempt) {
      std::vector<int> row;
      for (const int choices : axes)
        row.push_back(static_cast<int>(random() % static_cast<unsigned>(choices)));
      const std::array<int, 4> wanted = *missing.begin();
      row[static_cast<std::size_t>(wanted[0])] = wanted[2];
      row[static_cast<std::size_t>(wanted[1])] = wanted[3];
      if (best.empty() || covered(row).size() > covered(best).size()) best = row;
    }
    for (const auto& pair : covered(best)) missing.erase(pair);
    rows.push_back(best);
  }
  return rows;
}

TEST(Checkpoint, GivesTheSameStateToAnyWorldStageAndTier) {
  const int worlds = kWorlds.size(), tiers = kTiers.size(), recipes = kRecipes.size();
  for (const auto& row : cover_pairs({worlds, 4, tiers, worlds, 4, tiers, recipes})) {
    const auto at = [&](int i) {
      return static_cast<std::size_t>(row[static_cast<std::size_t>(i)]);
    };
    const Recipe& kept = kRecipes[at(6)];
    const TrainingCase from = case_of(kWorlds[at(0)], row[1], kTiers[at(2)], kept),
                       to = case_of(kWorlds[at(3)], row[4], kTiers[at(5)], kept);
    std::ostringstream what;
    what << kept.name << ": world " << from.world << " stage " << row[1] << " tier " << row[2]
         << " to world " << to.world << " stage " << row[4] << " tier " << row[5];
    SCOPED_TRACE(what.str());
    const TestDirectory directory;
    const Saved saved = save_after_steps(from, directory.path());
    const Loaded loaded = load(to, saved);
    EXPECT_NE(loaded.before, saved.state);
    EXPECT_EQ(loaded.state, saved.state);
    EXPECT_TRUE(loaded.notes.empty()) << loaded.notes.front();
    if (from.world == to.world) {
      EXPECT_EQ(loaded.continued, saved.continued);
    }
    EXPECT_NE(saved.continued, saved.state);
  }
}

/// Of one kind of all tensors, as they are stored.
using Bytes = std::map<std::string, std::vector<std::byte>>;

/// By kind, verified.
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

/// As optimizers round masters.
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

/// A run of `from`, loaded by one of `to`, which saves it again: what both checkpoints hold.
struct Converted {
  Converted(const Recipe& from, const Recipe& to)
      : first(save_after_steps(case_of(3, 2, OffloadTarget::none, from), directory / "from")),
        loaded(load(case_of(2, 3, OffloadTarget::cpu, to), first, directory / "to")),
        before(stored(first.directory)),
        after(stored(directory / "to/" + train::checkpoint_name(kSteps))) {}

  TestDirectory directory;
  Saved first;
  Loaded loaded;
  std::map<std::string, Bytes> before, after;  ///< by kind
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

/// The same run with masters of one and of two parts has the same masters; so has what is loaded.
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

/// `words` are in the message.
void expect_refused(const TrainingCase& from, const TrainingCase& to,
                    const std::vector<std::string>& words) {
  const TestDirectory directory;
  const Saved saved = save_after_steps(from, directory.path());
  try {
    load(to, saved);
    ADD_FAILURE() << "loaded";
  } catch (const DataError& error) {
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << word << " in " << error.what();
    EXPECT_NE(std::string(error.what()).find(saved.directory), std::string::npos) << error.what();
  }
}

TEST(RefusedCheckpoint, LacksAMoment) {
  TrainingCase lion = case_of(2, 1, OffloadTarget::none, recipe("fp32"));
  const TrainingCase adamw = lion;
  lion.options.optimizer.type = train::OptimizerType::lion;
  expect_refused(lion, adamw,
                 {"cannot resume moment2 of '", "has no tensor 'moment2.",
                  "go on with the optimizer and --state-recipe that saved it",
                  "start from its weights (--model "});
}

TEST(RefusedCheckpoint, KeepsMomentsThatDoNotConvert) {
  expect_refused(case_of(2, 1, OffloadTarget::none, recipe("8bit")),
                 case_of(2, 1, OffloadTarget::none, recipe("fp32-master")),
                 {"cannot resume moment1 of '", "keeps 'moment1.", "which cannot become fp32",
                  "go on with the --state-recipe that saved it"});
}

TEST(RefusedCheckpoint, IsOfAnotherModel) {
  const TrainingCase from = case_of(2, 3, OffloadTarget::none, recipe("fp32"));
  TrainingCase to = from;
  to.model.intermediate = 7999;
  expect_refused(from, to,
                 {"of shape [", ", this run needs [", "use the config.json of this checkpoint"});
  to = from;
  to.model.layers = 2;
  expect_refused(from, to, {"has no weights '", "use the config.json of this checkpoint"});
}

/// Nothing is gathered on one rank: each writes what it owns, to the block.
TEST(SavedBytes, AreEveryRanksOwnShare) {
  TrainingCase training = case_of(2, 2, OffloadTarget::none, recipe("fp32"));
  training.model.hidden = 128;
  training.model.head_size = 32;
  const TestDirectory directory;
  const Saved saved = save_after_steps(training, directory.path());
  std::int64_t written = 0;
  for (const train::SaveResult& result : saved.results) written += result.my_bytes;
  EXPECT_EQ(written, saved.results[0].bytes) << "every block once";
  on_engines(training, [&](train::Engine& engine) {
    const train::SavedState state(engine.programs());
    std::int64_t share = 0, ranges = 0;
    const train::Piece* last = nullptr;
    for (const train::RoutedPiece& routed : state.assignment().pieces) {
      if (routed.saver != engine.communicator().rank()) continue;
      share += routed.piece.size_bytes();
      if (last == nullptr || last->file != routed.piece.file || last->end != routed.piece.begin)
        ++ranges;
      last = &routed.piece;
    }
    const auto rank = static_cast<std::size_t>(engine.communicator().rank());
    const std::int64_t slack = share / 50 + ranges * train::kBlockBytes;
    EXPECT_LT(slack, share) << "the check is able to fail";
    EXPECT_NEAR(static_cast<double>(saved.results[rank].my_bytes), static_cast<double>(share),
                static_cast<double>(slack))
        << "rank " << rank << ", " << ranges << " ranges";
  });
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

/// One rank's operation fails: all throw the same, nothing is left, and the next save works.
void expect_all_fail(int bad_rank, FileOperation operation, bool lasting) {
  const TrainingCase training = case_of(3, 2, OffloadTarget::none, recipe("fp32-master"));
  const TestDirectory directory;
  const std::string& output = directory.path();
  int failures = 0;
  on_engines(training, [&](train::Engine& engine) {
    PosixFileSystem files;
    comm::Communicator& communicator = engine.communicator();
    int attempt = 0;
    const auto save = [&](FileSystem& with, std::int64_t at) {
      train::save_checkpoint(
          engine, with,
          {.output = output, .step = at, .attempt = {.run_id = "test", .attempt = attempt++}});
    };
    save(files, 1);
    step(engine, 0);
    for (int nth = 1;; ++nth) {
      const bool bad = communicator.rank() == bad_rank;
      FailingFileSystem failing(files, {operation, nth, ENOSPC, lasting});
      std::string message;
      ExitCode code = ExitCode::done;
      try {
        save(bad ? static_cast<FileSystem&>(failing) : files, 2);
      } catch (const PeerError& error) {
        ADD_FAILURE() << "a rank left: " << error.what();
        throw;
      } catch (const Error& error) {
        message = error.what();
        code = error.exit_code();
      }
      const bool fired = comm::gather_numbers(
                             communicator, failing.fired())[static_cast<std::size_t>(bad_rank)] > 0;
      // After this rank 0 has removed what there was.
      const std::vector<std::string> all = comm::gather_texts(communicator, message);
      EXPECT_TRUE(std::ranges::all_of(all, [&](const auto& m) { return m == message; }))
          << message << "\n"
          << all.front();
      if (!fired) {
        EXPECT_EQ(message, "");
        break;
      }
      EXPECT_EQ(code, ExitCode::io) << message;
      EXPECT_TRUE(message.starts_with("rank " + std::to_string(bad_rank) + ": ")) << message;
      EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
      if (communicator.rank() == 0) {
        ++failures;
        EXPECT_EQ(names_in(output), std::vector<std::string>{train::checkpoint_name(1)});
        CheckpointReader(files, output + "/" + train::checkpoint_name(1)).verify();
      }
      engine.barrier();
    }
    if (communicator.rank() != 0) return;
    EXPECT_EQ(names_in(output),
              (std::vector<std::string>{train::checkpoint_name(1), train::checkpoint_name(2)}));
    CheckpointReader(files, output + "/" + train::checkpoint_name(2)).verify();
  });
  EXPECT_GT(failures, 0) << "no fault fired";
}

TEST(FailingRank, MakesEveryRankThrowItsMessage) {
  const std::vector<FileOperation> helpers{FileOperation::open, FileOperation::write,
                                           FileOperation::sync};
  std::vector<FileOperation> first{FileOperation::make_directory, FileOperation::create,
                                   FileOperation::reserve,        FileOperation::write,
                                   FileOperation::sync,           FileOperation::sync_directory,
                                   FileOperation::rename};
  for (const int rank : {0, 2})
    for (const FileOperation operation : rank == 0 ? first : helpers) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", operation " +
                   std::to_string(static_cast<int>(operation)));
      expect_all_fail(rank, operation, false);
    }
}

TEST(FailingRank, MayFailFromThenOn) {
  for (const int rank : {0, 2}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    expect_all_fail(rank, FileOperation::write, true);
  }
}

}  // namespace
}  // namespace strata::tests
