// Compares the kernel's count of the process's peak with the prediction. The count never falls, so
// there is one test per process.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include "comm/factory.h"
#include "tests/training/ranks.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

std::int64_t peak_bytes() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss * 1024;
}

/// Runs three steps in a new engine; returns the predicted size of the arena.
std::int64_t train(const TrainingCase& training) {
  const auto communicators = comm::make_thread_communicators(1);
  train::EngineParts parts;
  parts.programs = build_rank(training, *communicators[0]);
  parts.site = std::make_unique<train::CpuSite>(*communicators[0], training.threads);
  const std::int64_t predicted = train::count_memory(parts.programs).arena();
  train::Engine engine(std::move(parts));
  train::initialize_weights(engine, 1);
  const auto fill = [&](std::int64_t step, int, const train::MicroBatch& batch) {
    const auto vocabulary = static_cast<std::size_t>(training.model.vocabulary);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      batch.tokens[i] =
          static_cast<std::int32_t>((i * 7 + static_cast<std::size_t>(step)) % vocabulary);
      batch.targets[i] = static_cast<std::int32_t>(i * 11 % vocabulary);
    }
  };
  for (int step = 0; step < 3; ++step) engine.train_step(step, fill);
  return predicted;
}

TEST(PeakMemory, GrowsByThePredictedArena) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory counts too";
#endif
  TrainingCase training;
  training.model = tiny_gpt2();
  training.model.vocabulary = 5000;
  training.model.layers = 6;
  training.model.hidden = 384;
  training.model.heads = training.model.kv_heads = 6;
  training.model.head_size = 64;
  training.model.intermediate = 1536;
  training.model.context = 256;
  training.options = tiny_options(1, 4, 3);
  training.options.sequence_length = 256;
  training.threads = 2;
  // A tiny run first brings in pages of code (3 MiB, most of them the matrix library's), which are
  // not memory of the run that is measured.
  TrainingCase first;
  first.model = tiny_gpt2();
  first.options = tiny_options(1, 2, 3);
  first.threads = training.threads;
  train(first);

  const std::int64_t before = peak_bytes();
  const std::int64_t predicted = train(training);
  const std::int64_t growth = peak_bytes() - before;
  const std::int64_t tolerance = std::max<std::int64_t>(predicted / 50, 16 << 20);
  EXPECT_GT(predicted, 250 << 20);
  EXPECT_LE(growth, predicted + tolerance) << "predicted " << predicted;
  EXPECT_GE(growth, predicted - tolerance) << "predicted " << predicted;
  RecordProperty("beyond_prediction_kib", (growth - predicted) / 1024);
}

}  // namespace
}  // namespace strata::tests
