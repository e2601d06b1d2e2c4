// Checkpoints written from a snapshot while training goes on have the bytes of checkpoints written
// while training stood still, and do not change training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/testing/failing_file_system.h"
#include "core/testing/test_directory.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/memory_report.h"
#include "train/engine/save_checkpoint.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

using plan::Home;
using train::UpdateTime;

constexpr int kBefore = 2, kSteps = 4;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Reads a checkpoint's files by name, except the manifest, which names the attempt.
std::map<std::string, std::string> files_of(const std::string& checkpoint) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint))
    if (entry.path().filename() != "manifest.json")
      files[entry.path().filename()] = read(entry.path());
  return files;
}

train::FillBatch batches(int rank) {
  return [rank](std::int64_t s, int micro_step, const train::MicroBatch& batch) {
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      const std::size_t at = i + static_cast<std::size_t>(s * 31 + rank * 7 + micro_step * 3);
      batch.tokens[i] = static_cast<std::int32_t>(at * 13 % 90);
      batch.targets[i] = static_cast<std::int32_t>((at + 1) * 13 % 90);
    }
  };
}

enum class Save : std::uint8_t { standing, snapshot, windows };

struct Run {
  std::map<std::string, std::string> files;  ///< checkpoint of step kBefore
  std::string state;                         ///< state after kSteps steps
};

/// Trains and saves. Steps overlap as in a run: only a standing save drains.
Run train_and_save(TrainingCase training, Save save, const std::string& output) {
  training.saving = save == Save::standing   ? runtime::SaveMemory::writing
                    : save == Save::snapshot ? runtime::SaveMemory::snapshot
                                             : runtime::SaveMemory::windows;
  PosixFileSystem files;
  train::prepare_output_folder(files, output);
  const train::SaveRequest request{
      .output = output, .step = kBefore, .attempt = {.run_id = "test"}};
  Run run;
  on_rank_threads(training.world, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    train::initialize_weights(engine, 7);
    const train::FillBatch fill = batches(communicator.rank());
    for (int s = 0; s < kBefore; ++s) engine.start_step(s, fill);
    if (save == Save::standing) {
      engine.drain();
      train::save_checkpoint(engine, files, request);
      for (int s = kBefore; s < kSteps; ++s) engine.start_step(s, fill);
    } else {
      engine.settle();
      train::CheckpointSave writing(engine, files, request);
      engine.start_step(kBefore, fill, train::Snapshot::take);
      engine.settle();
      // Updates that run too early would show in the files.
      for (int s = kBefore + 1; s < kSteps; ++s) engine.start_step(s, fill);
      engine.settle();
      writing.write_snapshot();
      while (!writing.advance()) continue;
    }
    engine.drain();
    const std::string state = train::describe_state(engine);
    if (communicator.rank() == 0) run.state = state;
    communicator.close();
  });
  run.files = files_of(output + "/" + train::checkpoint_name(kBefore));
  return run;
}

void expect_same_checkpoint(const TrainingCase& training, const std::string& what,
                            const std::vector<Save>& saves = {Save::snapshot, Save::windows}) {
  SCOPED_TRACE(what);
  const TestDirectory directory;
  const Run standing = train_and_save(training, Save::standing, directory / "standing");
  for (const Save save : saves) {
    SCOPED_TRACE(save == Save::windows ? "in windows" : "in memory");
    const Run snapshot = train_and_save(
        training, save, directory / (save == Save::windows ? "windows" : "snapshot"));
    EXPECT_EQ(snapshot.state, standing.state) << "training is another one";
    ASSERT_EQ(snapshot.files.size(), standing.files.size());
    for (const auto& [name, bytes] : standing.files)
      EXPECT_TRUE(snapshot.files.at(name) == bytes) << name;
  }
}

TrainingCase small_case(int world, int stage, DType dtype) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(world, 8, kSteps);
  training.options.zero.stage = stage;
  training.options.tile_elements = 4096;
  training.options.dtype = training.options.communication_dtype = dtype;
  training.world = world;
  return training;
}

class SnapshotOf : public testing::TestWithParam<int> {};

TEST_P(SnapshotOf, EveryStage) {
  const int world = GetParam();
  for (const int stage : world == 1 ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 3})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int accumulation : {1, 2}) {
        TrainingCase training = small_case(world, stage, dtype);
        training.options.accumulation = accumulation;
        training.options.micro_batch = 8 / world / accumulation;
        expect_same_checkpoint(training, "stage " + std::to_string(stage) + ", accumulation " +
                                             std::to_string(accumulation));
      }
}

TEST_P(SnapshotOf, EveryTierAndTimeOfUpdates) {
  const int world = GetParam();
  std::vector<Save> saves{Save::windows};
  if (world > 1) saves.push_back(Save::snapshot);
  for (const Home optimizer : {Home::device, Home::host, Home::disk})
    for (const Home parameters : {Home::device, Home::host, Home::disk})
      for (const UpdateTime updates :
           {UpdateTime::step_end, UpdateTime::next_step, UpdateTime::gradient}) {
        if (optimizer == Home::device && updates == UpdateTime::next_step) continue;
        TrainingCase training = small_case(world, world == 1 ? 0 : 3, DType::bf16);
        training.options.offload.optimizer = optimizer;
        training.options.offload.parameters = parameters;
        training.options.offload.updates = updates;
        if (updates == UpdateTime::gradient) {
          training.options.gradient_clipping = 0;
          training.options.bf16_check_overflow = false;
        }
        for (const double ratio : {1.0, 0.5}) {
          if (ratio != 1 && optimizer != Home::host) continue;
          training.options.offload.optimizer_ratio = ratio;
          expect_same_checkpoint(training,
                                 "optimizer " + std::to_string(static_cast<int>(optimizer)) +
                                     ", parameters " +
                                     std::to_string(static_cast<int>(parameters)) + ", updates " +
                                     std::to_string(static_cast<int>(updates)),
                                 saves);
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Worlds, SnapshotOf, testing::Values(1, 2));

TEST(Snapshot, WindowsTakeLittleMemory) {
  for (const Home optimizer : {Home::device, Home::host}) {
    TrainingCase training = small_case(1, 0, DType::bf16);
    training.options.tile_elements = 1024;
    training.options.offload.optimizer = optimizer;
    on_rank_threads(1, [&](comm::Communicator& communicator) {
      const auto build = [&](runtime::SaveMemory saving) {
        training.saving = saving;
        return build_rank(training, communicator);
      };
      using runtime::Tier;
      const compile::StepPrograms still = build(runtime::SaveMemory::writing);
      const compile::StepPrograms memory = build(runtime::SaveMemory::snapshot);
      const compile::StepPrograms windows = build(runtime::SaveMemory::windows);
      const auto host_bytes = [](const compile::StepPrograms& programs) {
        return programs.arena_bytes(Tier::pinned) + programs.arena_bytes(Tier::pageable);
      };
      std::int64_t copied = 0;
      for (const auto& piece : windows.snapshot_pieces) {
        copied += piece.end - piece.begin;
        EXPECT_LE(piece.end - piece.begin, 4096) << piece.copy;
      }
      EXPECT_GT(copied, 100 * 4096);
      EXPECT_GE(host_bytes(memory), host_bytes(still) + copied);
      EXPECT_LE(host_bytes(windows), host_bytes(still) + 4 * 4096);
      EXPECT_EQ(windows.disk_bytes(), 0);
    });
  }
}

/// A window is free as soon as the drive has its bytes: an instruction that waited for all windows
/// would wait for the drive.
TEST(Snapshot, NothingWaitsForAllWindows) {
  for (const UpdateTime updates : {UpdateTime::step_end, UpdateTime::next_step}) {
    TrainingCase training = small_case(2, 3, DType::bf16);
    training.options.tile_elements = 1024;
    training.options.offload.optimizer = Home::host;
    training.options.offload.updates = updates;
    training.saving = runtime::SaveMemory::windows;
    on_rank_threads(2, [&](comm::Communicator& communicator) {
      const compile::StepPrograms programs = build_rank(training, communicator);
      const std::vector<runtime::Instruction>& all =
          programs.find(compile::ProgramKind::snapshot)->instructions;
      const auto find = [&](auto begin, auto end, std::string_view label) {
        return std::find_if(begin, end, [&](const runtime::Instruction& in) {
          return std::string_view(in.label).starts_with(label);
        });
      };
      const auto first_layer = find(all.begin(), all.end(), "layer.0");
      const auto last_copy = find(all.rbegin(), all.rend(), "snapshot ");
      ASSERT_NE(first_layer, all.end());
      ASSERT_NE(last_copy, all.rend());
      EXPECT_LT(first_layer - all.begin(), all.rend() - last_copy - 1);
    });
  }
}

/// There are more blocks than their writer has room for, and pieces end anywhere in them.
TEST(Snapshot, OfManyBlocks) {
  for (const Home optimizer : {Home::device, Home::host}) {
    TrainingCase training = small_case(2, 3, DType::bf16);
    training.model.vocabulary = 40000;
    training.model.hidden = 128;
    training.model.head_size = 32;
    training.options.tile_elements = 1 << 17;
    training.options.offload.optimizer = optimizer;
    expect_same_checkpoint(training, "optimizer " + std::to_string(static_cast<int>(optimizer)));
  }
}

std::string state_after(const TrainingCase& training, std::int64_t steps) {
  std::string state;
  on_rank_threads(training.world, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    train::initialize_weights(engine, 7);
    for (std::int64_t s = 0; s < steps; ++s) engine.start_step(s, batches(communicator.rank()));
    engine.drain();
    const std::string mine = train::describe_state(engine);
    if (communicator.rank() == 0) state = mine;
    communicator.close();
  });
  return state;
}

/// Lets every operation of one rank fail once, each in a save of its own: all ranks hear of it,
/// nothing is left, training goes on as without saves, and the next save works.
void expect_failures_change_nothing(runtime::SaveMemory saving, int bad_rank,
                                    FileOperation operation) {
  TrainingCase training = small_case(2, 3, DType::bf16);
  training.saving = saving;
  training.model.vocabulary = 20000;  // both ranks write blocks
  const TestDirectory directory;
  PosixFileSystem files;
  train::prepare_output_folder(files, directory.path());
  std::int64_t steps = 0;
  int failures = 0;
  std::string state;
  on_rank_threads(2, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    train::initialize_weights(engine, 7);
    const bool bad = communicator.rank() == bad_rank, first = communicator.rank() == 0;
    engine.start_step(0, batches(communicator.rank()));
    std::int64_t done = 1;
    for (int nth = 1;; ++nth) {
      FailingFileSystem failing(files, {operation, nth, ENOSPC, false});
      engine.settle();
      std::string message;
      try {
        train::CheckpointSave save(engine, bad ? static_cast<FileSystem&>(failing) : files,
                                   {.output = directory.path(),
                                    .step = done,
                                    .attempt = {.run_id = "test", .attempt = nth}});
        engine.start_step(done++, batches(communicator.rank()), train::Snapshot::take);
        engine.settle();
        save.write_snapshot();
        while (!save.advance()) continue;
      } catch (const PeerError&) {
        throw;
      } catch (const Error& error) {
        message = error.what();
      }
      const std::vector<std::string> all = comm::gather_texts(communicator, message);
      EXPECT_TRUE(std::ranges::all_of(all, [&](const auto& m) { return m == message; })) << message;
      const bool fired = comm::gather_numbers(
                             communicator, failing.fired())[static_cast<std::size_t>(bad_rank)] > 0;
      EXPECT_EQ(fired, message.find("No space left on device") != std::string::npos) << message;
      if (!fired) break;
      if (first) {
        ++failures;
        EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
      }
      engine.barrier();
    }
    engine.drain();
    const std::string mine = train::describe_state(engine);
    if (first) {
      state = mine;
      steps = done;
      train::CheckpointReader(files, directory / train::checkpoint_name(done - 1)).verify();
    }
    communicator.close();
  });
  EXPECT_GT(failures, 0) << "no fault fired";
  EXPECT_EQ(state, state_after(training, steps)) << "training is another one";
}

TEST(Snapshot, ThatCannotBeWrittenChangesNothing) {
  for (const auto saving : {runtime::SaveMemory::snapshot, runtime::SaveMemory::windows})
    for (const int rank : {0, 1})
      for (const auto operation : {FileOperation::write, FileOperation::sync}) {
        SCOPED_TRACE("saving " + std::to_string(static_cast<int>(saving)) + ", rank " +
                     std::to_string(rank) + ", operation " +
                     std::to_string(static_cast<int>(operation)));
        expect_failures_change_nothing(saving, rank, operation);
      }
}

/// Activations lie on the disk after everything else, the outlet of the windows included.
TEST(Snapshot, BesideActivationsOnTheDisk) {
  TrainingCase training = small_case(1, 0, DType::bf16);
  training.model.context = training.options.sequence_length = 128;
  training.model.layers = 4;
  training.options.offload.activations = Home::disk;
  training.saving = runtime::SaveMemory::windows;
  on_rank_threads(1, [&](comm::Communicator& communicator) {
    const std::int64_t all = train::count_memory(build_rank(training, communicator)).arena();
    // Activations leave the device only when memory is short.
    for (std::int64_t tenths = 4;; ++tenths) try {
        training.options.offload.device_memory_bytes = all / 10 * tenths;
        const train::MemoryBytes memory = train::count_memory(build_rank(training, communicator));
        ASSERT_GT(memory.disk.transient, 0);
        return;
      } catch (const OutOfMemory&) {
        ASSERT_LT(tenths, 15);
      }
  });
  expect_same_checkpoint(training, "");
}

/// A snapshot's copies leave the device on a stream of their own, beside recorded stretches.
TEST(Snapshot, OnADevice) {
  for (const Home optimizer : {Home::device, Home::host}) {
    TrainingCase training = small_case(2, 2, DType::bf16);
    training.model.layers = 1;
    training.options.offload.optimizer = optimizer;
    training.make_device = [] {
      return std::make_unique<cuda::SimulatedDevice>(cuda::ThreadOrder::forward);
    };
    expect_same_checkpoint(training, "optimizer " + std::to_string(static_cast<int>(optimizer)),
                           {optimizer == Home::device ? Save::snapshot : Save::windows});
  }
}

TEST(Snapshot, OfShardsThatDoNotDivide) {
  for (const int stage : {0, 1, 2, 3}) {
    TrainingCase training = small_case(3, stage, DType::bf16);
    training.options.global_batch = 3 * training.options.micro_batch;
    expect_same_checkpoint(training, "stage " + std::to_string(stage));
  }
}

}  // namespace
}  // namespace strata::tests
