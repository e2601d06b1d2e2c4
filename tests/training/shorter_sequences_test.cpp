// Steps of shorter samples: the Programs that a Plan has for them give the bits of Programs made
// for that length alone, whatever ran before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kLongest = 16;  ///< sequence length of tiny_options
const std::vector<std::int64_t> kShorter{4, 8};

struct Step {
  std::int64_t given;  ///< tokens of each of its samples
  std::int64_t taken;  ///< sequence length of its Programs
};
constexpr Step kSteps[] = {{16, 16}, {8, 8}, {5, 8}, {16, 16}, {3, 4}, {12, 16}, {4, 4}, {8, 8}};
constexpr Step kEvaluated{6, 8};

/// Fills batches with samples of `given` tokens and pads them to the length of the batch.
train::FillBatch samples_of(int rank, std::int64_t given) {
  return [rank, given](std::int64_t step, int micro_step, const train::MicroBatch& batch) {
    const std::size_t room = batch.tokens.size() / batch.samples.size();
    std::ranges::fill(batch.tokens, 0);
    std::ranges::fill(batch.targets, -1);
    for (std::size_t s = 0; s < batch.samples.size(); ++s) {
      batch.samples[s] = (step * 10 + micro_step) * 10 + rank;
      for (std::size_t t = 0; t < static_cast<std::size_t>(given); ++t) {
        batch.tokens[s * room + t] = static_cast<std::int32_t>(
            (batch.samples[s] * 7 + static_cast<std::int64_t>(t * t)) % 50);
        batch.targets[s * room + t] = (batch.tokens[s * room + t] + 3) % 50;
      }
    }
  };
}

struct Result {
  std::vector<double> numbers;  ///< losses, norms, held-out loss
  std::string state;
};

void keep(const kernels::StepMetrics& metrics, Result& result) {
  result.numbers.push_back(metrics.loss);
  result.numbers.push_back(metrics.gradient_norm);
}

/// Trains one engine that has Programs of all lengths; steps overlap. Steps of shorter samples take
/// a snapshot if the case saves by snapshots.
Result with_one_engine(TrainingCase training) {
  training.shorter_sequences = kShorter;
  Result result;
  on_engines(training, [&](train::Engine& engine) {
    const int rank = engine.communicator().rank();
    Result mine;
    train::initialize_weights(engine, 1);
    for (std::int64_t step = 0; step < std::ssize(kSteps); ++step) {
      const std::int64_t given = kSteps[step].given;
      const bool saves = training.saving != runtime::SaveMemory::none && step == 2;
      const auto before = engine.start_step(step, samples_of(rank, given),
                                            saves ? train::Snapshot::take : train::Snapshot::none,
                                            given == kLongest ? 0 : given);
      if (before) keep(*before, mine);
      if (saves) engine.complete_snapshot();
    }
    keep(*engine.drain(), mine);
    engine.release_snapshot();
    mine.numbers.push_back(
        engine.evaluate(2, samples_of(rank, kEvaluated.given), kEvaluated.given));
    mine.state = train::describe_state(engine);
    if (rank == 0) result = mine;
  });
  return result;
}

/// Trains with Programs of one length at a time, which the engine adopts before each step; the
/// caller pads the samples.
Result with_programs_of_one_length(const TrainingCase& training) {
  Result result;
  on_engines(training, [&](train::Engine& engine) {
    const int rank = engine.communicator().rank();
    std::map<std::int64_t, compile::StepPrograms> known;
    const auto adopt = [&](std::int64_t sequence) {
      if (!known.contains(sequence)) {
        TrainingCase of_length = training;
        of_length.options.sequence_length = sequence;
        known[sequence] = build_rank(of_length, engine.communicator());
      }
      engine.adopt(known.at(sequence));
    };
    Result mine;
    train::initialize_weights(engine, 1);
    for (std::int64_t step = 0; step < std::ssize(kSteps); ++step) {
      adopt(kSteps[step].taken);
      keep(engine.train_step(step, samples_of(rank, kSteps[step].given)), mine);
    }
    adopt(kEvaluated.taken);
    mine.numbers.push_back(engine.evaluate(2, samples_of(rank, kEvaluated.given)));
    mine.state = train::describe_state(engine);
    if (rank == 0) result = mine;
  });
  return result;
}

TrainingCase small_case(int world) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.embedding_dropout = training.model.residual_dropout = 0.1;
  training.options = tiny_options(world, 8, 1);
  training.options.zero.stage = 3;
  training.world = world;
  return training;
}

void expect_bits_of_one_length(const TrainingCase& training) {
  const Result expected = with_programs_of_one_length(training);
  const Result found = with_one_engine(training);
  EXPECT_EQ(found.numbers, expected.numbers);
  EXPECT_EQ(found.state, expected.state);
}

TEST(ShorterSequences, HaveTheBitsOfProgramsOfOneLength) {
  for (const int world : {1, 2}) expect_bits_of_one_length(small_case(world));
}

TEST(ShorterSequences, HaveThemWithAccumulationVirtualRanksAndByLayer) {
  TrainingCase training = small_case(2);
  training.options.accumulation = 2;
  training.options.micro_batch = 2;
  expect_bits_of_one_length(training);
  training.options.offload.layer_major = true;
  expect_bits_of_one_length(training);
  training = small_case(2);
  training.options.virtual_ranks = 4;
  training.options.micro_batch = 2;
  expect_bits_of_one_length(training);
}

TEST(ShorterSequences, HaveThemWithLateUpdatesOnTheDiskAndASnapshot) {
  TrainingCase training = small_case(2);
  training.options.offload.optimizer = plan::Home::disk;
  training.options.offload.updates = train::UpdateTime::next_step;
  training.options.tile_elements = 4096;
  training.saving = runtime::SaveMemory::snapshot;
  expect_bits_of_one_length(training);
}

TEST(ShorterSequences, HaveThemOnADeviceThatReplaysRecordings) {
  TrainingCase training = small_case(1);
  training.model.layers = 1;
  training.options.global_batch = training.options.micro_batch = 2;
  training.make_device = [] {
    return std::make_unique<cuda::SimulatedDevice>(cuda::ThreadOrder::forward);
  };
  expect_bits_of_one_length(training);  // an engine that adopts Programs drops its recordings
}

/// Runs a step for which rank r gives `lengths[r]`, with Programs of shorter samples; returns the
/// error's message, or "".
std::string refusal(const TrainingCase& of, const std::vector<std::int64_t>& lengths) {
  TrainingCase training = of;
  training.world = static_cast<int>(lengths.size());
  training.shorter_sequences = kShorter;
  std::string message;
  try {
    on_engines(training, [&](train::Engine& engine) {
      const int rank = engine.communicator().rank();
      const std::int64_t given = lengths[static_cast<std::size_t>(rank)];
      train::initialize_weights(engine, 1);
      engine.train_step(0, samples_of(rank, given), given);
    });
  } catch (const Error& error) {
    message = error.what();
  }
  return message;
}

TEST(ShorterSequences, AreRefusedWhereRanksDisagree) {
  TrainingCase training = small_case(2);
  EXPECT_EQ(refusal(training, {5, 8}), "") << "both take the same Programs";
  for (const int stage : {0, 3}) {
    training.options.zero.stage = stage;
    EXPECT_THAT(refusal(training, {4, 8}), HasSubstr("different sequences"));
  }
}

TEST(ShorterSequences, AreRefusedPastThePlans) {
  EXPECT_THAT(refusal(small_case(1), {17}),
              HasSubstr("samples of 17 tokens, expected 1 to 16 (the Plan's shape.sequence)"));
  EXPECT_THAT(refusal(small_case(1), {-1}), HasSubstr("samples of -1 tokens"));
}

}  // namespace
}  // namespace strata::tests
