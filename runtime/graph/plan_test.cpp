#include "runtime/graph/plan.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "core/error.h"

namespace strata::runtime {
namespace {

/// Draws every field at random from what a Plan may hold.
class RandomPlans {
 public:
  explicit RandomPlans(std::uint64_t seed) : random_(seed) {}

  Plan next() {
    Plan plan;
    plan.mesh = comm::data_mesh(static_cast<int>(1 + below(1000)));
    plan.micro_steps = static_cast<int>(1 + below(1000));
    plan.virtual_ranks = static_cast<int>(below(1000));
    const UnitRecipe common = recipe();
    for (std::uint64_t u = below(6); u > 0; --u) {
      plan.units.push_back(unit(u));
      plan.units.back().recipe = coin() ? common : recipe();
    }
    int block = 0;
    for (std::uint64_t s = below(4); s > 0; --s) {
      const int first = block + static_cast<int>(below(3));
      const int last = first + static_cast<int>(below(3));
      plan.saved.push_back({first, last, {}});
      for (std::uint64_t v = below(4); v > 0; --v)
        plan.saved.back().actions.emplace_back(std::to_string(v) + ".norm",
                                               static_cast<SavedAction>(below(4)));
      block = last + 1;
    }
    plan.gradient.produced = dtype();
    plan.gradient.reduced = dtype();
    plan.gradient.accumulated = coin() ? DType::f32 : plan.gradient.produced;
    plan.limits = {amount(), amount(), amount(), amount(), amount(), 0};
    plan.limits.tile_elements = 1024 * static_cast<std::int64_t>(1 + below(1 << 30));
    for (std::int64_t& bytes : plan.budget_bytes) bytes = amount();
    plan.updates = static_cast<Updates>(below(3));
    plan.order = static_cast<MicroStepOrder>(below(2));
    plan.shape = {dtype(), static_cast<std::int64_t>(1 + below(64)),
                  static_cast<std::int64_t>(1 + below(4096))};
    for (std::int64_t tokens = 1; tokens < plan.shape.sequence; tokens *= 2)
      if (coin()) plan.shorter_sequences.push_back(tokens);
    plan.saving = static_cast<SaveMemory>(below(4));
    plan.evaluates = coin();
    if (coin()) plan.backend = kernels::DeviceCapabilities::Backend::cuda;
    plan.scheduled = coin();
    plan.read_ahead_bytes = amount();
    plan.host_bytes = amount();
    return plan;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool coin() { return below(2) == 0; }
  DType dtype() { return std::array{DType::f32, DType::bf16, DType::f16}[below(3)]; }
  Tier tier() { return static_cast<Tier>(below(kTiers)); }
  std::int64_t amount() {
    const std::uint64_t shift = 1 + below(64);
    return shift == 64 ? kUnlimited : static_cast<std::int64_t>(random_() >> shift);
  }
  UnitRecipe recipe() {
    UnitRecipe recipe{.dtype = dtype(), .trainable = coin()};
    if (coin()) return recipe;
    recipe.optimizer = {.operation = coin() ? "adamw" : "sgd",
                        .master = static_cast<MasterFormat>(below(3)),
                        .moments = static_cast<int>(below(3)),
                        .moment_dtype = std::array{DType::f32, DType::bf16, DType::u8}[below(3)],
                        .scale_block = static_cast<std::int64_t>(below(1024)),
                        .random = coin()};
    return recipe;
  }
  UnitPlan unit(std::uint64_t number) {
    static const std::string kOdd[] = {
        "layer.0.matrices", "\"quoted\\\"", "tab\tnew\nline", "\xc3\xa9", " ", "{\"unit\": 1}"};
    UnitPlan plan;
    plan.unit = kOdd[below(std::size(kOdd))] + std::to_string(number);
    plan.elements = static_cast<std::int64_t>(below(1ULL << 40));
    plan.shard_optimizer = coin();
    plan.shard_gradient = coin();
    plan.shard_parameter = coin();
    plan.optimizer_tier = tier();
    plan.gradient_tier = tier();
    plan.parameter_tier = tier();
    plan.optimizer_device_elements = amount();
    plan.optimizer_host_elements = amount();
    return plan;
  }
  std::mt19937_64 random_;
};

TEST(Plan, IsReadBackAsItWasWritten) {
  RandomPlans plans(7);
  Plan before;
  for (int i = 0; i < 2000; ++i) {
    const Plan plan = plans.next();
    ASSERT_EQ(Plan::from_json(plan.to_json(), "plan.json"), plan) << plan.to_json();
    ASSERT_NE(plan, before);
    before = plan;
  }
  EXPECT_EQ(Plan::from_json(Plan{}.to_json(), "plan.json"), Plan{});
}

TEST(Plan, EveryFieldIsWritten) {
  Plan base;
  base.units.push_back({.unit = "a"});
  base.saved.push_back({1, 2, {{"0.norm", SavedAction::recompute}}});
  const auto differs = [&](const auto& change) {
    Plan changed = base;
    change(changed);
    EXPECT_NE(changed.to_json(), base.to_json());
    EXPECT_NE(changed, base);
  };
  differs([](Plan& p) { p.mesh = comm::data_mesh(2); });
  differs([](Plan& p) { p.micro_steps = 2; });
  differs([](Plan& p) { p.virtual_ranks = 2; });
  differs([](Plan& p) { p.units[0].unit = "b"; });
  differs([](Plan& p) { p.units[0].elements = 1; });
  differs([](Plan& p) { p.units[0].shard_optimizer = true; });
  differs([](Plan& p) { p.units[0].shard_gradient = true; });
  differs([](Plan& p) { p.units[0].shard_parameter = true; });
  differs([](Plan& p) { p.units[0].optimizer_tier = Tier::pinned; });
  differs([](Plan& p) { p.units[0].gradient_tier = Tier::pageable; });
  differs([](Plan& p) { p.units[0].parameter_tier = Tier::disk; });
  differs([](Plan& p) { p.saved[0].first_block = 0; });
  differs([](Plan& p) { p.saved[0].last_block = 3; });
  differs([](Plan& p) { p.saved[0].actions[0].first = "1.linear"; });
  differs([](Plan& p) { p.saved[0].actions[0].second = SavedAction::disk; });
  differs([](Plan& p) { p.gradient.produced = DType::bf16; });
  differs([](Plan& p) { p.gradient.reduced = DType::bf16; });
  differs([](Plan& p) { p.gradient.accumulated = DType::bf16; });
  differs([](Plan& p) { p.limits.prefetch_elements = 1; });
  differs([](Plan& p) { p.limits.max_live_elements = 1; });
  differs([](Plan& p) { p.limits.max_reuse_distance = 1; });
  differs([](Plan& p) { p.limits.reduce_bucket_elements = 1; });
  differs([](Plan& p) { p.limits.gather_bucket_elements = 1; });
  differs([](Plan& p) { p.limits.tile_elements = 1; });
  differs([](Plan& p) { p.units[0].optimizer_device_elements = 1; });
  differs([](Plan& p) { p.units[0].optimizer_host_elements = 1; });
  differs([](Plan& p) { p.units[0].recipe.dtype = DType::bf16; });
  differs([](Plan& p) { p.units[0].recipe.trainable = false; });
  differs([](Plan& p) { p.units[0].recipe.optimizer.operation = "lion"; });
  differs([](Plan& p) { p.units[0].recipe.optimizer.master = MasterFormat::packed; });
  differs([](Plan& p) { p.units[0].recipe.optimizer.moments = 1; });
  differs([](Plan& p) { p.units[0].recipe.optimizer.moment_dtype = DType::u8; });
  differs([](Plan& p) { p.units[0].recipe.optimizer.scale_block = 128; });
  differs([](Plan& p) { p.units[0].recipe.optimizer.random = true; });
  differs([](Plan& p) { p.updates = Updates::next_step; });
  differs([](Plan& p) { p.order = MicroStepOrder::by_layer; });
  differs([](Plan& p) { p.backend = kernels::DeviceCapabilities::Backend::cuda; });
  differs([](Plan& p) { p.shape.dtype = DType::bf16; });
  differs([](Plan& p) { p.shape.batch = 2; });
  differs([](Plan& p) { p.shape.sequence = 2; });
  differs([](Plan& p) { p.shorter_sequences = {8}; });
  differs([](Plan& p) { p.saving = SaveMemory::windows; });
  differs([](Plan& p) { p.evaluates = true; });
  differs([](Plan& p) { p.scheduled = false; });
  differs([](Plan& p) { p.read_ahead_bytes = 1; });
  differs([](Plan& p) { p.host_bytes = 1; });
  for (std::size_t tier = 0; tier < kTiers; ++tier)
    differs([&](Plan& p) { p.budget_bytes[tier] = 1; });
}

TEST(Plan, SaysOfAUnitOnlyWhatDiffersFromMost) {
  Plan plan;
  const UnitRecipe most{.dtype = DType::bf16};
  plan.units = {{.unit = "a", .recipe = {.dtype = DType::bf16, .trainable = false}},
                {.unit = "b", .recipe = most},
                {.unit = "c", .recipe = most}};
  const std::string text = plan.to_json();
  const auto line_of = [&](const std::string& words) {
    const std::size_t begin = text.rfind('\n', text.find(words)) + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(line_of("\n  \"recipe\""),
            "  \"recipe\": {\"dtype\": \"bf16\", \"trainable\": true, \"optimizer\": "
            "{\"operation\": \"adamw\", \"master\": \"fp32\", \"moments\": 2, \"moment_dtype\": "
            "\"fp32\", \"scale_block\": 0, \"random\": false}},");
  EXPECT_TRUE(line_of("\"unit\": \"a\"").ends_with(", \"recipe\": {\"trainable\": false}},"));
  EXPECT_EQ(line_of("\"unit\": \"b\"").find("recipe"), std::string::npos);
  EXPECT_EQ(Plan::from_json(text, "plan.json"), plan);
}

/// Returns the error of from_json for a Plan's text in which `from` is replaced by `to`.
std::string refusal(const std::string& from, const std::string& to) {
  Plan plan;
  plan.units = {{.unit = "a"}, {.unit = "b"}, {.unit = "c", .recipe = {.trainable = false}}};
  plan.saved = {{1, 2, {{"0.norm", SavedAction::recompute}}}, {4, 4, {}}};
  plan.shape.sequence = 16;
  plan.shorter_sequences = {8, 12};
  std::string text = plan.to_json();
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "'" + from + "' is not in " + text;
  text.replace(at, from.size(), to);
  try {
    Plan::from_json(text, "plan.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted " + text;
}

TEST(Plan, RefusesWhatIsNotAPlanWithItsPath) {
  struct Row {
    const char *from, *to, *message;
  };
  const Row rows[] = {
      {"\"data\": 1", "\"data\": 0",
       "plan.json:4: mesh.data: expected an integer from 1 to 1048576, found integer 0"},
      {"\"data\": 1", "\"data\": \"1\"", "mesh.data: expected integer, found string \"1\""},
      {"\"data\": 1", "\"data\": 1.0", "mesh.data: expected integer, found real number 1.0"},
      {"\"micro_steps\": 1", "\"Micro_steps\": 1",
       "Micro_steps: unknown key, expected one of version, backend, mesh, "},
      {"\"tensor\": 1", "\"tensor\": 2",
       "mesh.tensor: expected 1: every axis but data has one rank so far, found integer 2"},
      {"\"version\": 5", "\"version\": 4", "version: expected version 5 of Plans, found integer 4"},
      {"\"master\": \"fp32\", ", "", "recipe.optimizer: misses the key \"master\""},
      {"\"trainable\": true, ", "", "recipe: misses the key \"trainable\""},
      {"\"master\": \"fp32\"", "\"master\": \"fp16\"",
       "recipe.optimizer.master: expected one of fp32, packed, none, found string \"fp16\""},
      {"\"moments\": 2", "\"moments\": 3",
       "recipe.optimizer.moments: expected an integer from 0 to 2, found integer 3"},
      {"\"moment_dtype\": \"fp32\"", "\"moment_dtype\": \"fp16\"",
       "recipe.optimizer.moment_dtype: expected one of fp32, bf16, uint8, found string \"fp16\""},
      {"{\"trainable\": false}", "{\"trained\": false}",
       "units[2].recipe.trained: unknown key, expected one of dtype, trainable, optimizer"},
      {"{\"trainable\": false}", "{\"optimizer\": {}}",
       "units[2].recipe.optimizer: misses the key \"operation\""},
      {"\"backend\": \"cpu\"", "\"backend\": \"tpu\"",
       "backend: expected one of cpu, cuda, found string \"tpu\""},
      {"[8, 12]", "[12, 8]",
       "shorter_sequences[1]: expected more than 12 and less than shape.sequence, 16, found "
       "integer 8"},
      {"[8, 12]", "[8, 8]", "shorter_sequences[1]: expected more than 8 and less"},
      {"[8, 12]", "[0]", "shorter_sequences[0]: expected more than 0 and less"},
      {"[8, 12]", "[16]", "shorter_sequences[0]: expected more than 0 and less"},
      {"[8, 12]", "[8.0]", "shorter_sequences[0]: expected integer, found real number 8.0"},
      {"[8, 12]", "8", "shorter_sequences: expected array, found integer 8"},
      {"\"batch\": 1", "\"batch\": 0", "shape.batch: expected an integer from 1 to "},
      {"\"saving\": \"none\"", "\"saving\": \"some\"",
       "saving: expected one of none, writing, snapshot, windows, found string \"some\""},
      {"\"scheduled\": true", "\"scheduled\": 1", "scheduled: expected boolean, found integer 1"},
      {"\"micro_steps\": 1,", "", "top level: misses the key \"micro_steps\""},
      {"\"data\": 1,", "\"data\": 1, \"data\": 1,", "data"},
      {"\"micro_steps\": 1", "\"micro_steps\": -1",
       "micro_steps: expected an integer from 1 to 1073741824, found integer -1"},
      {"\"produced\": \"fp32\"", "\"produced\": \"int8\"",
       "gradient.produced: expected one of fp32, bf16, fp16, found string \"int8\""},
      {"\"accumulated\": \"fp32\"", "\"accumulated\": \"bf16\"",
       "gradient.accumulated: expected fp32 or the type produced, found string \"bf16\""},
      {"\"reduced\": \"fp32\", ", "", "gradient: misses the key \"reduced\""},
      {"\"tile_elements\": 4194304", "\"tile_elements\": -1",
       "limits.tile_elements: expected a multiple of 1024, at most 1099511627776, found "
       "integer -1"},
      {"\"tile_elements\": 4194304", "\"tile_elements\": 0",
       "limits.tile_elements: expected a mul"},
      {"\"tile_elements\": 4194304", "\"tile_elements\": 1500", "found integer 1500"},
      {"\"tile_elements\": 4194304", "\"tile_elements\": 2199023255552", "limits.tile_elements: "},
      {"\"tile_elements\": 4194304", "\"tile_elements\": \"unlimited\"",
       "limits.tile_elements: expected a multiple of 1024, at most 1099511627776, found "
       "string \"unlimited\""},
      {"\"reduce_bucket_elements\": 500000000", "\"reduce_bucket_elements\": -1",
       "limits.reduce_bucket_elements: expected an integer from 0 or \"unlimited\", found"},
      {"\"prefetch_elements\"", "\"prefetch\"", "limits.prefetch: unknown key, expected one of"},
      {"\"disk\": \"unlimited\"", "\"disk\": \"much\"",
       "budget_bytes.disk: expected an integer from 0 or \"unlimited\", found string \"much\""},
      {"\"pinned\": \"unlimited\", ", "", "budget_bytes: misses the key \"pinned\""},
      {"\"device\": \"unlimited\"", "\"device\": 1e9",
       "budget_bytes.device: expected an integer from 0 or \"unlimited\", found real number"},
      {"[1, 2]", "[1]", "saved[0].blocks: expected a first and a last block, found array of 1"},
      {"[1, 2]", "[2, 1]", "saved[0].blocks[1]: expected an integer from 2 to "},
      {"\"recompute\"", "\"forget\"",
       "saved[0].actions[\"0.norm\"]: expected one of keep, recompute, host, disk, found string"},
      {"\"0.norm\": \"recompute\"", "\"0.norm\": \"keep\", \"0.norm\": \"disk\"", "0.norm"},
      {"[4, 4]", "[2, 4]",
       "saved[1].blocks[0]: blocks from 2 on overlap with, or come before, those of the range "
       "before, "
       "[1, 2]"},
      {"\"unit\": \"b\"", "\"unit\": \"a\"",
       "units[1].unit: expected a name that no other unit has, found string \"a\""},
      {"\"unit\": \"a\"", "\"unit\": \"\"", "units[0].unit: expected a name"},
      {"\"unit\": \"a\"", "\"unit\": null", "units[0].unit: expected string, found null"},
      {"\"elements\": 0", "\"elements\": -1",
       "units[0].elements: expected an integer from 0, found integer -1"},
      {"\"host\": 0}", "\"host\": \"unlimited\"}",
       "units[0].resident.host: expected an integer from 0, found string \"unlimited\""},
      {"\"optimizer\": false", "\"optimizer\": 0",
       "units[0].shard.optimizer: expected boolean, found integer 0"},
      {"\"parameter\": \"device\"", "\"parameter\": \"moon\"",
       "units[0].tier.parameter: expected one of device, pinned, pageable, disk, found string"},
      {"\"tier\": {", "\"tier\": {\"color\": 1, ",
       "units[0].tier.color: unknown key, expected one of optimizer, gradient, parameter"},
      {"\"units\": [", "\"units\": 3, \"other\": [", "other: unknown key"},
      {"{\n  \"version\"", "[\n  \"version\"", "plan.json:2: "},
      {"  ]\n}\n", "", "plan.json:"},
  };
  for (const Row& row : rows) {
    const std::string message = refusal(row.from, row.to);
    EXPECT_NE(message.find(row.message), std::string::npos)
        << row.from << " -> " << row.to << " gives: " << message;
  }
}

}  // namespace
}  // namespace strata::runtime
