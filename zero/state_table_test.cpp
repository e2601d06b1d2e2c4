#include "zero/state_table.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/state_names.h"
#include "zero/policy.h"

namespace strata::zero {
namespace {

using kernels::Shape;
using runtime::ParameterUnit;

/// A large unit with a padded tensor, one of less than a cell with gaps, and a frozen one.
std::vector<ParameterUnit> make_units() {
  std::vector<ParameterUnit> units(3);
  units[0].name = "embedding.matrices";
  units[0].add("table", Shape{100, 70}, 128 * 70, true, {});
  units[0].add("positions", Shape{33, 70}, 33 * 70, true, {});
  units[1].name = "layer.vectors";
  units[1].add("q.bias", Shape{5}, 5, true, {});
  units[1].add("k.bias", Shape{3}, 3, false, {});
  units[1].add("norm", Shape{70}, 70, true, {});
  units[2].name = "frozen.matrices";
  units[2].add("frozen", Shape{40, 50}, 40 * 50, true, {});
  units[2].trainable = false;
  for (ParameterUnit& unit : units) unit.seal();
  return units;
}

StepSettings settings_of(const std::vector<ParameterUnit>& units, int stage, int world, int rank,
                         DType dtype, int moments) {
  StepSettings settings;
  settings.plan.world = world;
  // The small unit stays gathered at stage 3, as persistence thresholds make it.
  settings.plan.units = plan_units(units, {stage, 2048, INT64_MAX}, world);
  settings.rank = rank;
  settings.dtype = dtype;
  settings.optimizer.moments = moments;
  return settings;
}

std::vector<std::string> kinds_of(const ParameterUnit& unit, const StepSettings& settings) {
  std::vector<std::string> kinds{"parameter"};
  if (!unit.trainable) return kinds;
  if (settings.dtype != DType::f32) kinds.emplace_back("master");
  if (settings.optimizer.moments > 0) kinds.emplace_back("moment1");
  if (settings.optimizer.moments > 1) kinds.emplace_back("moment2");
  return kinds;
}

/// How often each element of each tensor and kind occurs.
using Counts = std::map<std::string, std::vector<int>>;

Counts empty_counts(const std::vector<ParameterUnit>& units, const StepSettings& settings) {
  Counts counts;
  for (const ParameterUnit& unit : units)
    for (const runtime::Segment& segment : unit.segments)
      for (const std::string& kind : kinds_of(unit, settings))
        counts[segment.name + " " + kind].assign(static_cast<std::size_t>(segment.elements), 0);
  return counts;
}

void count(const std::vector<StateEntry>& entries, Counts& counts) {
  for (const StateEntry& entry : entries) {
    auto at = counts.find(entry.name + " " + entry.kind);
    ASSERT_NE(at, counts.end()) << entry.name << " " << entry.kind << " should not exist";
    ASSERT_GT(entry.elements, 0);
    ASSERT_LE(entry.first_element + entry.elements, static_cast<std::int64_t>(at->second.size()));
    for (std::int64_t i = 0; i < entry.elements; ++i)
      ++at->second[static_cast<std::size_t>(entry.first_element + i)];
  }
}

struct Case {
  int stage, world;
  DType dtype;
  int moments;
};

class StateTable : public testing::TestWithParam<int> {
 protected:
  static std::vector<Case> cases() {
    std::vector<Case> all;
    for (int stage = 0; stage <= 3; ++stage)
      for (DType dtype : {DType::f32, DType::bf16})
        for (int moments = 0; moments <= 2; ++moments)
          all.push_back({stage, GetParam(), dtype, moments});
    return all;
  }
  const std::vector<ParameterUnit> units_ = make_units();
};

TEST_P(StateTable, SavesEachElementOfEveryKindExactlyOnceOverAllRanks) {
  for (const Case& c : cases()) {
    Counts counts =
        empty_counts(units_, settings_of(units_, c.stage, c.world, 0, c.dtype, c.moments));
    for (int rank = 0; rank < c.world; ++rank)
      count(list_state(units_, settings_of(units_, c.stage, c.world, rank, c.dtype, c.moments),
                       StateScope::saved),
            counts);
    for (const auto& [name, times] : counts)
      for (std::size_t i = 0; i < times.size(); ++i)
        ASSERT_EQ(times[i], 1) << name << " element " << i << " at stage " << c.stage;
  }
}

TEST_P(StateTable, HoldsReplicasOfExactlyWhatTheStageDoesNotShard) {
  for (const Case& c : cases()) {
    Counts counts =
        empty_counts(units_, settings_of(units_, c.stage, c.world, 0, c.dtype, c.moments));
    for (int rank = 0; rank < c.world; ++rank)
      count(list_state(units_, settings_of(units_, c.stage, c.world, rank, c.dtype, c.moments),
                       StateScope::held),
            counts);
    for (const auto& [name, times] : counts) {
      const bool parameter = name.ends_with(" parameter");
      const bool small = !name.starts_with("table") && !name.starts_with("positions");
      const bool sharded = parameter ? c.stage >= 3 && !small : c.stage >= 1;
      for (std::size_t i = 0; i < times.size(); ++i)
        ASSERT_EQ(times[i], sharded ? 1 : c.world)
            << name << " element " << i << " at stage " << c.stage;
    }
  }
}

TEST_P(StateTable, EveryEntryLiesInDeclaredStorageApartFromTheOthers) {
  for (const Case& c : cases())
    for (int rank = 0; rank < c.world; ++rank) {
      const StepSettings settings = settings_of(units_, c.stage, c.world, rank, c.dtype, c.moments);
      runtime::PersistentLayout layout;
      declare_state(layout, units_, settings);
      std::map<std::string, std::vector<int>> used;
      for (const StateEntry& entry : list_state(units_, settings, StateScope::held)) {
        ASSERT_TRUE(layout.has(entry.storage)) << entry.storage;
        const runtime::PersistentValue& value = layout.find(entry.storage);
        EXPECT_EQ(value.type.dtype, entry.dtype);
        std::vector<int>& elements = used[entry.storage];
        elements.resize(static_cast<std::size_t>(value.type.shape.elements()), 0);
        ASSERT_LE(entry.storage_element + entry.elements, value.type.shape.elements());
        for (std::int64_t i = 0; i < entry.elements; ++i)
          ASSERT_EQ(elements[static_cast<std::size_t>(entry.storage_element + i)]++, 0)
              << entry.storage << " element " << entry.storage_element + i << " is claimed twice";
      }
    }
}

TEST_P(StateTable, FlatPlaceAndTensorPlaceAgree) {
  for (const Case& c : cases())
    for (int rank = 0; rank < c.world; ++rank)
      for (const StateEntry& entry :
           list_state(units_, settings_of(units_, c.stage, c.world, rank, c.dtype, c.moments),
                      StateScope::held))
        for (const ParameterUnit& unit : units_)
          for (const runtime::Segment& segment : unit.segments)
            if (segment.name == entry.name) {
              EXPECT_EQ(entry.unit_element - entry.first_element, segment.offset_elements);
            }
}

INSTANTIATE_TEST_SUITE_P(Worlds, StateTable, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace strata::zero
