// The memory that running steps take of each tier is what their Programs say, to the byte: every
// pair of model, stage, action, homes, type, length and order meets in some run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/program/arena_alignment.h"
#include "tests/training/rank_threads.h"
#include "tests/training/ranks.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

using plan::Home;
using runtime::Tier;

enum Axis : std::uint8_t {
  kModel,
  kStage,
  kAction,
  kOptimizer,
  kParameters,
  kGradients,
  kSaved,
  kType,
  kLength,
  kOrder,
  kAxes
};
/// Values of each axis. Homes: device, host memory, drive; actions: keep, recompute norms, layers.
constexpr std::array<int, kAxes> kValues{2, 4, 3, 3, 3, 3, 3, 2, 2, 3};
constexpr int kWorld = 2;
constexpr int kVocabulary = 128;  ///< needs no padding
constexpr std::byte kPattern{0x5c};
using Case = std::array<int, kAxes>;

/// Applies the rules of docs/offload.md for two ranks.
bool is_legal(const Case& a) {
  const bool parts = a[kStage] == 1 || a[kStage] == 2;
  if (parts && a[kParameters] == 2) return false;
  // Sums go beside optimizer state that leaves the device; to the drive a Plan alone sends them.
  return a[kGradients] != 1 || (a[kOptimizer] != 0 && a[kOrder] == 1);
}

std::vector<Case> legal_cases() {
  std::vector<Case> cases;
  Case next{};
  while (true) {
    if (is_legal(next)) cases.push_back(next);
    std::size_t axis = 0;
    while (axis < kAxes && ++next[axis] == kValues[axis]) next[axis++] = 0;
    if (axis == kAxes) return cases;
  }
}

constexpr std::size_t kAllValues = 28;
using Pairs = std::bitset<kAllValues * kAllValues>;

/// The pairs of values that meet in a case.
Pairs pairs_of(const Case& one) {
  std::array<std::size_t, kAxes> number{};
  for (std::size_t axis = 0, first = 0; axis < kAxes;
       first += static_cast<std::size_t>(kValues[axis++]))
    number[axis] = first + static_cast<std::size_t>(one[axis]);
  Pairs pairs;
  for (std::size_t a = 0; a < kAxes; ++a)
    for (std::size_t b = a + 1; b < kAxes; ++b) pairs.set(number[a] * kAllValues + number[b]);
  return pairs;
}

/// Chooses few cases with every pair that occurs in a legal one; greedily, so always the same ones.
std::vector<Case> covering_cases() {
  const std::vector<Case> cases = legal_cases();
  std::vector<Pairs> covers;
  Pairs missing;
  for (const Case& one : cases) missing |= covers.emplace_back(pairs_of(one));
  std::vector<Case> chosen;
  while (missing.any()) {
    const auto best = std::ranges::max_element(
        covers, {}, [&](const Pairs& pairs) { return (pairs & missing).count(); });
    chosen.push_back(cases[static_cast<std::size_t>(best - covers.begin())]);
    missing &= ~*best;
  }
  return chosen;
}

std::string text_of(const Case& one) {
  constexpr std::array<const char*, kAxes> kNames{"model",      "stage",     "action", "optimizer",
                                                  "parameters", "gradients", "saved",  "type",
                                                  "length",     "order"};
  std::string text;
  for (std::size_t axis = 0; axis < kAxes; ++axis)
    text += std::string(kNames[axis]) + " " + std::to_string(one[axis]) + " ";
  return text;
}

TrainingCase training_of(const Case& one) {
  TrainingCase training;
  training.model = one[kModel] == 0 ? tiny_gpt2() : tiny_llama();
  training.model.context = 256;
  training.model.vocabulary = kVocabulary;
  training.world = kWorld;
  const int micro_steps = one[kOrder] == 0 ? 1 : 2;
  // Saved values below 64 KiB stay on the device.
  constexpr int kMicroBatch = 8;
  train::TrainOptions& options = training.options;
  options = tiny_options(kWorld, kWorld * kMicroBatch * micro_steps, 2);
  options.accumulation = micro_steps;
  options.micro_batch = kMicroBatch;
  options.sequence_length = one[kLength] == 0 ? 128 : 192;
  options.dtype = options.communication_dtype = one[kType] == 0 ? DType::f32 : DType::bf16;
  options.zero.stage = one[kStage];
  options.recompute_norms = one[kAction] == 1;
  options.activation_checkpointing = one[kAction] == 2;
  options.tile_elements = 4096;
  options.offload.optimizer = static_cast<Home>(one[kOptimizer]);
  options.offload.parameters = static_cast<Home>(one[kParameters]);
  options.offload.activations = static_cast<Home>(one[kSaved]);
  options.offload.gradients = one[kGradients] == 1;
  options.offload.layer_major = one[kOrder] == 2;
  if (one[kGradients] == 2) training.change_plan = put_gradients_on_disk;
  return training;
}

/// Fills a batch with every token, so that no row of state stays zero.
void fill_batch(std::int64_t step, int micro_step, const train::MicroBatch& batch) {
  for (std::size_t i = 0; i < batch.samples.size(); ++i)
    batch.samples[i] = step * 100 + micro_step * 10 + static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    batch.tokens[i] = static_cast<std::int32_t>((i * 7) % kVocabulary);
    batch.targets[i] = static_cast<std::int32_t>((i * 5 + 1) % kVocabulary);
  }
}

/// Bytes from a tier's start to the end of the last granule that instructions use, with and without
/// their scratch.
struct HighestUsed {
  std::int64_t with_scratch = 0, without = 0;
};
HighestUsed highest_used(const compile::StepPrograms& said, Tier tier) {
  std::int64_t kept = 0, scratch = 0, others = 0;
  const auto note = [&](const runtime::Instruction& in, const runtime::Operand& operand,
                        std::int64_t& highest) {
    if (operand.tier == tier)
      highest = std::max(highest, operand.offset_bytes + runtime::touched_bytes(in, operand));
  };
  for (const auto& [key, program] : said.programs) {
    kept = program.persistent_bytes[static_cast<std::size_t>(tier)];
    for (const runtime::Instruction& in : program.instructions) {
      for (const runtime::Operand& operand : in.inputs) note(in, operand, others);
      for (const runtime::Operand& operand : in.outputs) note(in, operand, others);
      if (in.workspace) note(in, *in.workspace, scratch);
    }
  }
  others = std::max(others, kept);
  return {runtime::room_of(std::max(others, scratch), tier), runtime::room_of(others, tier)};
}

/// Bytes from an arena's start to the end of its last granule with a byte that is not `untouched`.
std::int64_t highest_touched(const runtime::Arena& arena, std::byte untouched, Tier tier) {
  std::int64_t bytes = arena.bytes();
  while (bytes > 0 && arena.base()[bytes - 1] == untouched) --bytes;
  // Records of optimizer state are whole sectors, wherever they lie.
  return runtime::room_of(bytes, tier == Tier::pageable ? Tier::disk : tier);
}

std::int64_t kept_bytes(const compile::StepPrograms& said, Tier tier) {
  return said.programs.begin()->second.persistent_bytes[static_cast<std::size_t>(tier)];
}

constexpr std::array kMemories{Tier::device, Tier::pinned, Tier::pageable};

/// Trains and evaluates, then compares each tier with what the Programs say. Counts the tiers that
/// are equal, and those whose highest bytes are scratch that kernels did not need.
void check_rank(const TrainingCase& training, comm::Communicator& communicator,
                std::atomic<int>& equal, std::atomic<int>& bounded) {
  RankDevice device;
  train::EngineParts parts = engine_parts(training, communicator, device);
  const compile::StepPrograms said = parts.programs;
  train::Engine engine(std::move(parts));
  for (const Tier tier : kMemories) {
    const runtime::Arena& arena = engine.arena(tier);
    const std::int64_t kept = kept_bytes(said, tier);
    EXPECT_EQ(arena.bytes(), said.arena_bytes(tier));
    if (arena.bytes() > kept)
      std::memset(arena.base() + kept, static_cast<int>(kPattern),
                  static_cast<std::size_t>(arena.bytes() - kept));
  }
  train::initialize_weights(engine, 1);
  for (std::int64_t step = 0; step < training.options.steps; ++step)
    (void)engine.start_step(step, fill_batch);
  (void)engine.drain();
  (void)engine.evaluate(1, fill_batch);
  for (const Tier tier : kMemories) {
    const runtime::Arena& arena = engine.arena(tier);
    if (arena.bytes() == 0) continue;
    SCOPED_TRACE(testing::Message() << "rank " << communicator.rank() << ", " << name_of(tier));
    // Memory of state is zero before it is written, and no record of it stays zero.
    const bool all_kept = kept_bytes(said, tier) == arena.bytes();
    const std::int64_t touched = highest_touched(arena, all_kept ? std::byte{0} : kPattern, tier);
    const HighestUsed used = highest_used(said, tier);
    EXPECT_EQ(used.with_scratch, arena.bytes()) << "the arena is larger than what it holds";
    if (used.without == arena.bytes()) {
      EXPECT_EQ(touched, arena.bytes());
      ++equal;
      continue;
    }
    EXPECT_GE(touched, used.without);
    EXPECT_LE(touched, arena.bytes());
    ++(touched == arena.bytes() ? equal : bounded);
  }
  if (device.disk) {
    EXPECT_EQ(device.disk->written_end(), said.disk_bytes()) << "rank " << communicator.rank();
    ++equal;
  }
  communicator.close();
}

// Scratch is a bound by design: an operation asks for what its kernels may need with any width of
// vectors and however they cut the work (kernels/ops/workspaces.h). Where scratch lies highest, its
// last bytes may stay as they were; all else is equal to the byte, in granules of the arena.
TEST(MemoryPairs, EveryTierTakesTheBytesThatAreSaid) {
  std::atomic<int> equal = 0, bounded = 0;
  for (const Case& one : covering_cases()) {
    SCOPED_TRACE(text_of(one));
    const TrainingCase training = training_of(one);
    on_rank_threads(kWorld, [&](comm::Communicator& communicator) {
      check_rank(training, communicator, equal, bounded);
    });
  }
  EXPECT_GT(equal, 5 * bounded);
}

TEST(MemoryPairs, AllPairsMeetInFewRuns) {
  const std::vector<Case> chosen = covering_cases();
  EXPECT_LE(chosen.size(), 24U);
  Pairs met, legal;
  for (const Case& one : chosen) met |= pairs_of(one);
  for (const Case& one : legal_cases()) legal |= pairs_of(one);
  EXPECT_EQ(met, legal);
  EXPECT_GT(met.count(), 300U);
}

}  // namespace
}  // namespace strata::tests
