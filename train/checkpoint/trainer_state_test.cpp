#include "train/checkpoint/trainer_state.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

TrainerState some_state() {
  return {
      .step = 1000,
      .consumed_samples = 32000,
      .seed = 42,
      .global_batch = 32,
      .sequence_length = 1024,
      .shuffle = true,
      .data_digest = "0123456789abcdef0123456789abcdef",
      .data_tokens = 123456789,
      .optimizer = "adamw",
      .state_recipe = "fp32-master",
      .dtype = "bf16",
      .scalars = {{"step_state.loss_scale", 65536.0}, {"step_state.updates", std::int64_t{999}}}};
}

constexpr const char* kText = R"({
  "version": 1,
  "step": 1000,
  "consumed_samples": 32000,
  "seed": 42,
  "global_batch": 32,
  "sequence_length": 1024,
  "shuffle": true,
  "data_digest": "0123456789abcdef0123456789abcdef",
  "data_tokens": 123456789,
  "optimizer": "adamw",
  "state_recipe": "fp32-master",
  "dtype": "bf16",
  "scalars": {
    "step_state.loss_scale": 65536.0,
    "step_state.updates": 999
  }
}
)";

std::string refusal(const std::string& what, const std::string& by) {
  std::string text = kText;
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  text.replace(at, what.size(), by);
  return message_of<DataError>([&] { parse_trainer_state(text, "t.json"); });
}

TEST(TrainerState, HasThisText) {
  EXPECT_EQ(to_text(some_state()), kText);
  EXPECT_EQ(parse_trainer_state(kText, "t.json"), some_state());
}

TEST(TrainerState, NumbersComeBackBitForBit) {
  TrainerState state = some_state();
  state.seed = std::numeric_limits<std::int64_t>::min();
  using Limits = std::numeric_limits<double>;
  const std::vector<double> numbers{-0.0,
                                    0.0,
                                    0.1,
                                    1.0 / 3,
                                    Limits::max(),
                                    Limits::min(),
                                    Limits::denorm_min(),
                                    -Limits::denorm_min() * 12345,
                                    0.95 * 0.95 * 0.95,
                                    0x1p63,
                                    1e22,
                                    1e23,
                                    5e-324};
  state.scalars.clear();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    state.scalars.push_back({"real " + std::to_string(i), numbers[i]});
  for (const std::int64_t whole : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX, INT64_MIN})
    state.scalars.push_back({"whole " + std::to_string(whole), whole});
  const TrainerState read = parse_trainer_state(to_text(state), "t.json");
  ASSERT_EQ(read.scalars.size(), state.scalars.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(std::get<double>(read.scalars[i].value)),
              std::bit_cast<std::uint64_t>(numbers[i]))
        << numbers[i];
  EXPECT_EQ(read, state);
}

TEST(TrainerState, WhatMakesNoSenseIsRefusedByName) {
  const std::vector<std::array<std::string, 3>> cases{
      {"\"version\": 1", "\"version\": 2", "version: the trainer state has format version 2"},
      {"\"version\": 1,", "", "misses the key \"version\""},
      {"\"step\": 1000", "\"step\": -1", "step: expected at least 0, found -1"},
      {"\"step\": 1000", "\"step\": 1000.0", "step: expected integer"},
      {"\"step\": 1000", "\"step\": 9223372036854775808", "step: expected integer"},
      {"\"step\": 1000,", "", "misses the key \"step\""},
      {"\"step\": 1000", "\"step\": 1000, \"step\": 1000", "step"},
      {"\"step\": 1000", "\"step\": 1000, \"steps\": 1000", "steps: unknown key"},
      {"\"consumed_samples\": 32000", "\"consumed_samples\": -32000", "consumed_samples"},
      {"\"seed\": 42", "\"seed\": \"42\"", "seed: expected integer"},
      {"\"global_batch\": 32", "\"global_batch\": 0", "global_batch: expected at least 1"},
      {"\"sequence_length\": 1024", "\"sequence_length\": 0", "sequence_length"},
      {"\"shuffle\": true", "\"shuffle\": 1", "shuffle: expected boolean"},
      {"\"0123456789abcdef0123456789abcdef\"", "\"0123456789abcdef0123456789abcde\"",
       "data_digest: expected 32"},
      {"\"0123456789abcdef0123456789abcdef\"", "\"0123456789abcdef0123456789abcdeg\"",
       "data_digest: expected 32"},
      {"\"data_tokens\": 123456789", "\"data_tokens\": 0", "data_tokens"},
      {"\"adamw\"", "\"adamv\"", "optimizer: expected one of adamw, adam, lion, sgd"},
      {"\"fp32-master\"", "\"\"", "state_recipe: expected a name"},
      {"\"bf16\"", "\"bf17\"", "dtype: expected one of fp32, bf16, fp16"},
      {"65536.0", "\"65536.0\"", "scalars[\"step_state.loss_scale\"]: expected number"},
      {"65536.0", "null", "scalars[\"step_state.loss_scale\"]: expected number"},
      {"65536.0", "1e999", "t.json"},
      {"65536.0", "NaN", "t.json"},
      {"\"step_state.updates\"", "\"step_state.loss_scale\"", "step_state.loss_scale"},
      {"\"step_state.updates\"", "\"\"", "expected a name"},
      {"\n}\n", "\n} x\n", "t.json"},
  };
  for (const auto& [what, by, expected] : cases) {
    const std::string message = refusal(what, by);
    EXPECT_NE(message.find(expected), std::string::npos) << by << "\n" << message;
    EXPECT_NE(message.find("t.json"), std::string::npos) << message;
  }
  const std::string text = kText;
  for (std::size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_THROW(parse_trainer_state(text.substr(0, size), "t.json"), DataError) << size;
}

TEST(TrainerState, WhatCouldNotBeReadIsNotWritten) {
  const auto message = [](const auto& change) {
    TrainerState state = some_state();
    change(state);
    return message_of<InternalError>([&] { to_text(state); });
  };
  EXPECT_NE(message([](TrainerState& s) {
              s.scalars[0].value = std::nan("");
            }).find("scalars[\"step_state.loss_scale\"]"),
            std::string::npos);
  EXPECT_NE(message([](TrainerState& s) { s.scalars[0].value = HUGE_VAL; }).find("loss_scale"),
            std::string::npos);
  EXPECT_NE(message([](TrainerState& s) { s.scalars[1].name = s.scalars[0].name; }).find("scalars"),
            std::string::npos);
  EXPECT_NE(message([](TrainerState& s) { s.data_digest = "12"; }).find("data_digest"),
            std::string::npos);
  EXPECT_NE(message([](TrainerState& s) { s.state_recipe = "\xff"; }).find("UTF-8"),
            std::string::npos);
}

}  // namespace
}  // namespace strata::train
