#include "train/data/batch_loader.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "core/testing/test_directory.h"
#include "train/data/token_file.h"

namespace strata::train {
namespace {

constexpr std::int64_t kSequence = 4;

/// A source of tokens 0, 1, 2 ... 250, so that a token is its own position.
std::shared_ptr<const TokenSource> counting_source(const TestDirectory& directory,
                                                   int tokens = 251) {
  std::string text;
  for (int i = 0; i < tokens; ++i) text.push_back(static_cast<char>(i));
  return open_token_file(directory.file("count.txt", text), 256);
}

struct Batch {
  std::vector<std::int32_t> ids, targets;
  std::vector<std::int64_t> samples;
};

Batch fill(const BatchLoader& loader, const BatchPlace& place, std::size_t rows) {
  Batch batch{std::vector<std::int32_t>(rows * kSequence),
              std::vector<std::int32_t>(rows * kSequence), std::vector<std::int64_t>(rows)};
  loader.fill(place, batch.ids, batch.targets, batch.samples);
  return batch;
}

BatchLoader make_loader(const TestDirectory& directory, bool shuffle,
                        BatchEnd end = BatchEnd::repeat, int tokens = 251) {
  auto source = counting_source(directory, tokens);
  const SampleOrder order(source->size(), source->name(), {kSequence, shuffle, 3});
  return BatchLoader(std::move(source), order, end);
}

TEST(BatchLoader, TargetsAreTheNextTokens) {
  const TestDirectory directory;
  const BatchLoader loader = make_loader(directory, true);
  const Batch batch = fill(loader, {.consumed_samples = 10}, 5);
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    const std::size_t row = i / kSequence;
    const std::int64_t start = loader.order().start_of(batch.samples[row]);
    EXPECT_EQ(batch.ids[i], start + static_cast<std::int64_t>(i % kSequence));
    EXPECT_EQ(batch.targets[i], batch.ids[i] + 1);
  }
}

TEST(BatchLoader, SamplesFollowTheFormula) {
  const TestDirectory directory;
  const BatchLoader loader = make_loader(directory, false);
  const Batch batch =
      fill(loader, {.consumed_samples = 100, .micro_step = 2, .data_rank = 1, .data_ranks = 3}, 2);
  EXPECT_EQ(batch.samples,
            (std::vector<std::int64_t>{100 + (2 * 3 + 1) * 2, 100 + (2 * 3 + 1) * 2 + 1}));
  EXPECT_EQ(batch.ids[0], 114 * 4 % (251 - 4 - 1));
}

/// The global batch is the same for every world: every sample once, with the same content.
TEST(BatchLoader, TheGlobalBatchDoesNotDependOnTheWorld) {
  const TestDirectory directory;
  const BatchLoader loader = make_loader(directory, true);
  constexpr std::int64_t kGlobal = 24;
  std::map<std::int64_t, std::int32_t> reference;
  for (const auto& [world, accumulation] :
       std::vector<std::pair<int, int>>{{1, 1}, {2, 3}, {3, 2}, {8, 1}, {4, 6}}) {
    std::map<std::int64_t, std::int32_t> first_ids;
    const auto rows = static_cast<std::size_t>(kGlobal / world / accumulation);
    for (int a = 0; a < accumulation; ++a)
      for (int rank = 0; rank < world; ++rank) {
        const Batch batch = fill(loader, {48, a, rank, world}, rows);
        for (std::size_t j = 0; j < rows; ++j)
          first_ids[batch.samples[j]] = batch.ids[j * kSequence];
      }
    EXPECT_EQ(std::ssize(first_ids), kGlobal);
    if (reference.empty()) reference = first_ids;
    EXPECT_EQ(first_ids, reference) << world;
  }
}

TEST(BatchLoader, AnEvaluationSeesEveryWindowOnce) {
  const TestDirectory directory;
  const BatchLoader loader = make_loader(directory, false, BatchEnd::stop, 16);  // 3 windows
  ASSERT_EQ(loader.order().windows(), 3);
  const Batch batch = fill(loader, {.consumed_samples = 2}, 2);
  EXPECT_EQ(batch.ids, (std::vector<std::int32_t>{8, 9, 10, 11, 0, 0, 0, 0}));
  EXPECT_EQ(batch.targets, (std::vector<std::int32_t>{9, 10, 11, 12, -1, -1, -1, -1}));
}

}  // namespace
}  // namespace strata::train
