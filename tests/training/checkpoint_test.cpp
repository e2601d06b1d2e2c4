// Checkpoints that all ranks write: which bytes each rank writes, and that they load under another
// world, stage and tier.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <sstream>
#include <tuple>

#include "core/testing/test_directory.h"
#include "machine/machine.h"
#include "plan/memory_needs.h"
#include "tests/training/saved_runs.h"
#include "train/engine/build_programs.h"
#include "train/engine/saved_state.h"

namespace strata::tests {
namespace {

using plan::Home;

constexpr std::array kWorlds{1, 2, 3, 4, 8};
constexpr std::array kTiers{Home::device, Home::host, Home::disk};

/// Returns rows of choices, one per axis, so that each pair of choices of two axes is in a row.
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

/// Each rank writes exactly the blocks that it owns: nothing is gathered on one rank.
TEST(SavedBytes, AreEveryRanksOwnShare) {
  TrainingCase training = case_of(2, 2, Home::device, recipe("fp32"));
  training.model.hidden = 128;
  training.model.head_size = 32;
  const TestDirectory directory;
  const Saved saved = save_after_steps(training, directory.path());
  std::int64_t written = 0;
  for (const train::SaveResult& result : saved.results) written += result.my_bytes;
  EXPECT_EQ(written, saved.results[0].bytes) << "every block once";
  on_new_weights(training, [&](train::Engine& engine) {
    const train::SavedState state(engine.programs());
    std::int64_t share = 0, ranges = 0;
    const train::FilePiece* last = nullptr;
    for (const train::RoutedPiece& routed : state.pieces()) {
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
    std::int64_t travels = state.leaving_bytes() - state.arriving_bytes();
    engine.sum_over_ranks({&travels, 1});
    EXPECT_EQ(travels, 0) << "what leaves one rank arrives at another";
  });
}

/// The host memory that one rank's Programs take where they save so.
std::int64_t host_bytes(const TrainingCase& training, int rank, runtime::SaveMemory saving) {
  const train::ProgramRequest request{
      .model = training.model, .options = training.options, .saving = saving, .scheduled = false};
  const compile::TrainingModel model = train::training_model(request);
  const machine::Machine machine = machine::cpu_machine(1);
  const comm::Seat seat{rank, training.world, comm::Exchange::peer_memory};
  const runtime::Plan plan = train::requested_plan(request, model, machine, training.world);
  const comm::MeshSeat where = comm::MeshSeat::of(seat, plan.mesh);
  return plan::memory_needs(compile::compile(model, plan, machine, where).programs).host;
}

/// A model remembers the sizes of states that it was asked for, and tells states apart by all that
/// sizes depend on.
TEST(SavedBytes, GetTheRoomsOfTheirStateWhateverWasAskedBefore) {
  const TrainingCase training = case_of(4, 1, Home::host, recipe("fp32"));
  const train::ProgramRequest request{.model = training.model, .options = training.options};
  const compile::TrainingModel model = train::training_model(request);
  const auto units = model.build({.batch = 1, .sequence = 8}, compile::ModelUse::train).graph.units;
  const auto rooms_of = [](const compile::SaveRooms& rooms) {
    return std::tuple(rooms.blocks, rooms.arriving, rooms.snapshot_arriving, rooms.windows_arriving,
                      rooms.leaving);
  };
  std::set<decltype(rooms_of({}))> different;
  for (const int stage : {1, 3, 1})
    for (const int world : {4, 2})
      for (const std::int64_t tile : {1024, 65536})
        for (const Home tier : {Home::host, Home::disk})
          for (int rank = 0; rank < world; ++rank) {
            const TrainingCase other = case_of(world, stage, tier, recipe("fp32"));
            const train::ProgramRequest asked{.model = other.model, .options = other.options};
            runtime::Plan plan =
                train::requested_plan(asked, model, machine::cpu_machine(1), world);
            plan.limits.tile_elements = tile;
            const comm::Seat seat{rank, world, comm::Exchange::peer_memory};
            const auto settings =
                compile::settings_of(model, plan, comm::MeshSeat::of(seat, plan.mesh));
            const auto expected = rooms_of(train::save_rooms(units, settings));
            EXPECT_EQ(rooms_of(model.save_rooms(units, settings)), expected);
            different.insert(expected);
          }
  EXPECT_GT(different.size(), 4);
}

/// Planners compile for the last rank alone, which has the largest shards.
TEST(SavedBytes, TakeNoMoreMemoryOnAnyRankThanOnTheLast) {
  for (const auto& [world, stage] : {std::pair(2, 0), {2, 1}, {3, 1}, {3, 3}, {8, 1}})
    for (const Home tier : kTiers)
      for (const auto saving : {runtime::SaveMemory::writing, runtime::SaveMemory::snapshot,
                                runtime::SaveMemory::windows}) {
        const TrainingCase training = case_of(world, stage, tier, recipe("fp32"));
        const std::int64_t last = host_bytes(training, world - 1, saving);
        for (int rank = 0; rank < world - 1; ++rank)
          EXPECT_LE(host_bytes(training, rank, saving), last)
              << "rank " << rank << " of " << world << ", stage " << stage << ", state in "
              << static_cast<int>(tier) << ", " << runtime::name_of(saving);
      }
}

}  // namespace
}  // namespace strata::tests
