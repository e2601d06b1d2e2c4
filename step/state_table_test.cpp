#include "step/state_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "core/error.h"
#include "kernels/ops/step_state.h"
#include "runtime/graph/state_names.h"
#include "step/optimizer_formats.h"
#include "zero/policy.h"

namespace strata::step {
namespace {

using kernels::Shape;
using runtime::MasterFormat;
using runtime::ParameterUnit;
using runtime::Tier;

/// Block size of quantized moments.
constexpr std::int64_t kBlock = 128;

/// Makes a large unit with a padded tensor, one of less than a cell with gaps, and a frozen one.
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
  for (ParameterUnit& unit : units) unit.seal();
  return units;
}

struct Case {
  int stage, world;
  DType dtype;
  runtime::OptimizerRecipe optimizer = {};
  Tier tier = Tier::device;  ///< tier of the optimizer's state
};

StepSettings settings_of(const std::vector<ParameterUnit>& units, const Case& c, int rank) {
  StepSettings settings;
  settings.plan.mesh = comm::data_mesh(c.world);
  // The small unit stays gathered at stage 3, since it is below the persistence threshold.
  settings.plan.units = zero::plan_units(units, {c.stage, 2048, INT64_MAX}, c.world);
  settings.at = comm::point_of(settings.plan.mesh, rank);
  settings.plan.shape.dtype = c.dtype;
  settings.plan.limits.tile_elements = 2048;
  for (runtime::UnitPlan& unit : settings.plan.units) {
    unit.recipe = {c.dtype, unit.unit != "frozen.matrices", c.optimizer};
    unit.optimizer_tier = c.tier;
    if (c.tier == Tier::device) continue;
    unit.parameter_tier = Tier::pinned;
    unit.optimizer_device_elements = 1000;  // rounded up to one cell of each rank's part
    if (c.tier == Tier::disk && unit.unit == "embedding.matrices")
      unit.optimizer_host_elements = 3000;
  }
  return settings;
}

std::vector<std::string> kinds_of(const runtime::UnitRecipe& recipe) {
  std::vector<std::string> kinds{"parameter"};
  if (!recipe.trainable) return kinds;
  const runtime::OptimizerRecipe& optimizer = recipe.optimizer;
  if (recipe.dtype != DType::f32 && optimizer.master == MasterFormat::fp32)
    kinds.emplace_back("master");
  if (optimizer.master == MasterFormat::packed) kinds.emplace_back("remainder");
  if (optimizer.moments > 0) kinds.emplace_back("moment1");
  if (optimizer.moments > 1) kinds.emplace_back("moment2");
  if (optimizer.scale_block > 0 && optimizer.moments > 0) kinds.emplace_back("moment1_scale");
  if (optimizer.scale_block > 0 && optimizer.moments > 1) kinds.emplace_back("moment2_scale");
  return kinds;
}

/// Counts the values of a kind in a stretch of flat space: elements, or blocks that begin in it.
std::int64_t values_in(const std::string& kind, std::int64_t begin, std::int64_t end) {
  if (!kind.ends_with("_scale")) return end - begin;
  std::int64_t blocks = 0;
  for (std::int64_t i = begin; i < end; ++i) blocks += i % kBlock == 0 ? 1 : 0;
  return blocks;
}

/// Counts the occurrences of each element, by tensor and kind.
using Counts = std::map<std::string, std::vector<int>>;

Counts empty_counts(const std::vector<ParameterUnit>& units, const StepSettings& settings) {
  Counts counts;
  for (std::size_t u = 0; u < units.size(); ++u)
    for (const runtime::Segment& segment : units[u].segments)
      for (const std::string& kind : kinds_of(settings.plan.units[u].recipe))
        counts[segment.name + " " + kind].assign(
            static_cast<std::size_t>(values_in(kind, segment.offset_elements,
                                               segment.offset_elements + segment.elements)),
            0);
  return counts;
}

constexpr std::int64_t kUpdates = 17;

/// Lists all entries but the scalars.
std::vector<StateEntry> tensors_of(const std::vector<ParameterUnit>& units,
                                   const StepSettings& settings, StateScope scope) {
  std::vector<StateEntry> entries = list_state(units, settings, scope, kUpdates);
  std::erase_if(entries, [](const StateEntry& entry) { return entry.kind == "scalar"; });
  return entries;
}

void count(const std::vector<StateEntry>& entries, Counts& counts) {
  for (const StateEntry& entry : entries) {
    auto at = counts.find(entry.name + " " + entry.kind);
    ASSERT_NE(at, counts.end()) << entry.name << " " << entry.kind << " should not exist";
    ASSERT_GT(entry.window.elements, 0);
    ASSERT_LE(entry.window.first + entry.window.elements,
              static_cast<std::int64_t>(at->second.size()));
    for (std::int64_t i = 0; i < entry.window.elements; ++i)
      ++at->second[static_cast<std::size_t>(entry.window.first + i)];
  }
}

class StateTable : public testing::TestWithParam<int> {
 protected:
  static std::vector<Case> cases() {
    std::vector<Case> all;
    for (int stage = 0; stage <= 3; ++stage)
      for (const runtime::OptimizerRecipe& format : optimizer_formats()) {
        if (format.master == MasterFormat::fp32)
          all.push_back({stage, GetParam(), DType::f32, format});
        for (const Tier tier : {Tier::device, Tier::pageable, Tier::disk})
          all.push_back({stage, GetParam(), DType::bf16, format, tier});
      }
    return all;
  }
  const std::vector<ParameterUnit> units_ = make_units();
};

TEST_P(StateTable, SavesEachElementOfEveryKindExactlyOnceOverAllRanks) {
  for (const Case& c : cases()) {
    Counts counts = empty_counts(units_, settings_of(units_, c, 0));
    for (int rank = 0; rank < c.world; ++rank)
      count(tensors_of(units_, settings_of(units_, c, rank), StateScope::saved), counts);
    for (const auto& [name, times] : counts)
      for (std::size_t i = 0; i < times.size(); ++i)
        ASSERT_EQ(times[i], 1) << name << " element " << i << " at stage " << c.stage;
  }
}

TEST_P(StateTable, HoldsReplicasOfExactlyWhatTheStageDoesNotShard) {
  for (const Case& c : cases()) {
    Counts counts = empty_counts(units_, settings_of(units_, c, 0));
    for (int rank = 0; rank < c.world; ++rank)
      count(tensors_of(units_, settings_of(units_, c, rank), StateScope::held), counts);
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
      const StepSettings settings = settings_of(units_, c, rank);
      runtime::PersistentLayout layout;
      declare_state(layout, units_, settings);
      std::map<std::string, std::vector<int>> used;
      for (const StateEntry& entry : tensors_of(units_, settings, StateScope::held)) {
        ASSERT_TRUE(layout.has(entry.storage)) << entry.storage;
        const runtime::PersistentValue& value = layout.find(entry.storage);
        EXPECT_EQ(value.tier, entry.tier) << entry.storage;
        const bool in_record = entry.kind != "parameter" && c.tier != Tier::device;
        EXPECT_EQ(value.type.dtype, in_record ? DType::u8 : entry.dtype) << entry.storage;
        std::vector<int>& bytes = used[entry.storage];
        bytes.resize(static_cast<std::size_t>(value.type.span_bytes()), 0);
        const std::int64_t begin = entry.storage_element * size_of(entry.dtype);
        const std::int64_t end = begin + entry.window.elements * size_of(entry.dtype);
        ASSERT_LE(end, std::ssize(bytes));
        for (std::int64_t i = begin; i < end; ++i)
          ASSERT_EQ(bytes[static_cast<std::size_t>(i)]++, 0)
              << entry.storage << " byte " << i << " is claimed twice";
      }
    }
}

TEST_P(StateTable, FlatPlaceAndTensorPlaceAgree) {
  for (const Case& c : cases())
    for (int rank = 0; rank < c.world; ++rank)
      for (const StateEntry& entry :
           tensors_of(units_, settings_of(units_, c, rank), StateScope::held))
        for (const ParameterUnit& unit : units_)
          for (const runtime::Segment& segment : unit.segments)
            if (segment.name == entry.name) {
              EXPECT_EQ(entry.tensor_begin, values_in(entry.kind, 0, segment.offset_elements));
            }
}

TEST_P(StateTable, TheOwnerOfAnElementIsTheRankThatSavesIt) {
  using Elements = std::map<std::string, std::vector<int>>;
  const auto note = [](const StateEntry& entry, int rank, Elements& ranks) {
    auto& of = ranks[entry.name + " " + entry.kind];
    of.resize(static_cast<std::size_t>(entry.shape.elements()), -1);
    for (std::int64_t i = 0; i < entry.window.elements; ++i)
      of[static_cast<std::size_t>(entry.window.first + i)] = rank;
  };
  for (const Case& c : cases()) {
    const auto settings = [&](int rank) { return settings_of(units_, c, rank); };
    Elements savers;
    for (int rank = 0; rank < c.world; ++rank)
      for (const StateEntry& entry : tensors_of(units_, settings(rank), StateScope::saved)) {
        EXPECT_EQ(entry.owner, rank);
        EXPECT_EQ(entry.version, kUpdates);
        note(entry, rank, savers);
      }
    Elements owners;
    for (int rank = 0; rank < c.world; ++rank)
      for (const StateEntry& entry : tensors_of(units_, settings(rank), StateScope::held)) {
        EXPECT_EQ(entry.version, kUpdates);
        note(entry, entry.owner, owners);
      }
    EXPECT_EQ(owners, savers) << "stage " << c.stage;
  }
}

TEST_P(StateTable, ScalarsAreTheFieldsOfTheStepsStateAndTheFirstRankSavesThem) {
  const std::vector<std::string> fields{"loss_scale",    "hysteresis",  "scale_step",
                                        "last_overflow", "updates",     "skipped",
                                        "beta1_power",   "beta2_power", "at_floor"};
  kernels::StepState state;  // a different number in each field
  state.loss_scale = 0;
  state.hysteresis = 1;
  state.scale_step = 2;
  state.last_overflow = 3;
  state.updates = 4;
  state.skipped = 5;
  state.beta1_power = 6;
  state.beta2_power = 7;
  state.at_floor = 8;
  for (int rank = 0; rank < GetParam(); ++rank)
    for (StateScope scope : {StateScope::held, StateScope::saved}) {
      const StepSettings settings = settings_of(units_, {3, GetParam(), DType::f16}, rank);
      std::vector<StateEntry> entries = list_state(units_, settings, scope, kUpdates);
      std::erase_if(entries, [](const StateEntry& entry) { return entry.kind != "scalar"; });
      if (scope == StateScope::saved && rank != 0) {
        EXPECT_TRUE(entries.empty());
        continue;
      }
      ASSERT_EQ(entries.size(), fields.size());
      for (std::size_t f = 0; f < fields.size(); ++f) {
        EXPECT_EQ(entries[f].name, "step_state." + fields[f]);
        EXPECT_EQ(entries[f].storage, runtime::kStepState);
        EXPECT_EQ(entries[f].owner, 0);
        EXPECT_EQ(entries[f].window.elements, entries[f].shape.elements());
        const auto* at =
            reinterpret_cast<const std::byte*>(&state) + 8 * entries[f].storage_element;
        double number = 0;
        std::int64_t integer = 0;
        std::memcpy(&number, at, sizeof number);
        std::memcpy(&integer, at, sizeof integer);
        EXPECT_EQ(entries[f].dtype == DType::f64 ? number : static_cast<double>(integer),
                  static_cast<double>(f))
            << entries[f].name;
      }
    }
}

/// One cell stays on the device, then 3000 elements rounded up to tiles in host memory.
TEST(StateTableOf, EachTileHasItsRecordInTheTierOfThePlan) {
  const std::vector<ParameterUnit> units = make_units();
  const Case c{0, 1, DType::bf16, {}, Tier::disk};
  std::map<std::string, std::string> parts;  // kind -> parts, of one tensor
  for (const StateEntry& entry :
       list_state(units, settings_of(units, c, 0), StateScope::held, kUpdates))
    if (entry.name == "table" && entry.kind != "parameter") {
      EXPECT_EQ(entry.storage, runtime::record_name("embedding.matrices", entry.window.first));
      parts[entry.kind] += std::string(name_of(entry.tier)) + " " +
                           std::to_string(entry.window.first) + "+" +
                           std::to_string(entry.window.elements) + ", ";
    }
  const std::string expected =
      "device 0+1024, pageable 1024+1024, pageable 2048+2048, disk 4096+2048, disk 6144+856, ";
  EXPECT_EQ(parts, (std::map<std::string, std::string>{
                       {"master", expected}, {"moment1", expected}, {"moment2", expected}}));
}

TEST(StateTableOf, AModelThatIsNotTrainedHasNoScalars) {
  const std::vector<ParameterUnit> units = make_units();
  StepSettings settings = settings_of(units, {0, 1, DType::f32}, 0);
  for (runtime::UnitPlan& unit : settings.plan.units) unit.recipe.trainable = false;
  for (const StateEntry& entry : list_state(units, settings, StateScope::held, 0))
    EXPECT_EQ(entry.kind, "parameter");
}

/// The first of the tensors that share a block has the scale.
TEST(StateTableOf, EveryScaleBelongsToTheTensorInWhichItsBlockBegins) {
  const std::vector<ParameterUnit> units = make_units();
  const runtime::OptimizerRecipe quantized{
      .operation = "adamw_8bit", .moment_dtype = DType::u8, .scale_block = kBlock};
  std::map<std::string, std::int64_t> scales;
  for (const StateEntry& entry : list_state(
           units, settings_of(units, {0, 1, DType::bf16, quantized}, 0), StateScope::held, 0))
    if (entry.kind == "moment1_scale") {
      EXPECT_EQ(entry.dtype, DType::f32);
      EXPECT_EQ(entry.window.elements, entry.shape.elements());
      scales[entry.name] += entry.window.elements;
    }
  EXPECT_EQ(scales, (std::map<std::string, std::int64_t>{
                        {"table", 55}, {"positions", 19}, {"q.bias", 1}, {"norm", 1}}));
}

TEST(StateTableOf, RefusesAPackedMasterOfParametersThatAreNotBf16) {
  const std::vector<ParameterUnit> units = make_units();
  const runtime::OptimizerRecipe packed{.operation = "adamw_packed",
                                        .master = MasterFormat::packed};
  for (const DType dtype : {DType::f32, DType::f16})
    EXPECT_THROW(
        list_state(units, settings_of(units, {0, 1, dtype, packed}, 0), StateScope::held, 0),
        InvalidArgument);
}

TEST(StateTableOf, RefusesThePlanOfAnotherModel) {
  const std::vector<ParameterUnit> units = make_units();
  StepSettings settings = settings_of(units, {0, 1, DType::f32}, 0);
  settings.plan.units[1].unit = "other";
  EXPECT_THROW(list_state(units, settings, StateScope::held, 0), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Worlds, StateTable, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace strata::step
