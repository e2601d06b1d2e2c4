#include "train/checkpoint/trainer_state.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <unordered_set>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "train/checkpoint/exact_members.h"

namespace strata::train {
namespace {

constexpr std::int64_t kStateVersion = 1;
constexpr std::int64_t kLimitBytes = std::int64_t{1} << 20;

std::int64_t integer_from(const JsonValue& value, std::int64_t least) {
  const std::int64_t number = value.as_integer();
  if (number < least) value.fail(fmt::format("expected at least {}, found {}", least, number));
  return number;
}

std::string digest_of(const JsonValue& value) {
  std::string digits = value.as_string();
  const bool good = digits.size() == kHashDigits &&
                    digits.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!good) value.fail("expected 32 hexadecimal digits, found " + value.describe());
  return digits;
}

std::string word_of(const JsonValue& value, std::initializer_list<std::string_view> words) {
  std::string word = value.as_string();
  if (std::ranges::find(words, word) == words.end())
    value.fail(
        fmt::format("expected one of {}, found {}", fmt::join(words, ", "), value.describe()));
  return word;
}

std::string name_of_recipe(const JsonValue& value) {
  std::string name = value.as_string();
  if (name.empty()) value.fail("expected a name, found " + value.describe());
  return name;
}

std::vector<TrainerState::Scalar> scalars_of(const JsonValue& object) {
  std::vector<TrainerState::Scalar> scalars;
  for (const auto& [name, value] : object.members()) {
    if (name.empty()) value.fail("expected a name before it");
    if (value.is(JsonKind::integer))
      scalars.push_back({name, value.as_integer()});
    else
      scalars.push_back({name, value.as_number()});
  }
  return scalars;
}

}  // namespace

std::string to_text(const TrainerState& state) {
  JsonWriter json(2);
  json.begin_object().member("version", kStateVersion).member("step", state.step);
  json.member("consumed_samples", state.consumed_samples).member("seed", state.seed);
  json.member("global_batch", state.global_batch);
  json.member("sequence_length", state.sequence_length).member("shuffle", state.shuffle);
  json.member("data_digest", state.data_digest).member("data_tokens", state.data_tokens);
  json.member("optimizer", state.optimizer).member("state_recipe", state.state_recipe);
  json.member("dtype", state.dtype).key("scalars").begin_object();
  for (const TrainerState::Scalar& scalar : state.scalars)
    std::visit([&](auto value) { json.member(scalar.name, value); }, scalar.value);
  const std::string text = json.end_object().end_object().finish() + "\n";
  // State that cannot be read back must fail now, not when it is needed.
  try {
    if (parse_trainer_state(text, kTrainerStateName) == state) return text;
  } catch (const DataError& error) {
    throw InternalError(std::string("state that cannot be saved: ") + error.what());
  }
  throw InternalError(
      fmt::format("state that cannot be saved: a text in {} is not UTF-8", kTrainerStateName));
}

TrainerState parse_trainer_state(std::string_view text, const std::string& file) {
  JsonOptions options;
  options.depth_limit = 4;
  options.size_limit_bytes = kLimitBytes;
  const JsonValue top = parse_json(text, file, options);
  require_version(top, "version", kStateVersion, "the trainer state");
  const auto values =
      exact_members(top, {"version", "step", "consumed_samples", "seed", "global_batch",
                          "sequence_length", "shuffle", "data_digest", "data_tokens", "optimizer",
                          "state_recipe", "dtype", "scalars"});
  TrainerState state;
  state.step = integer_from(values[1], 0);
  state.consumed_samples = integer_from(values[2], 0);
  state.seed = values[3].as_integer();
  state.global_batch = integer_from(values[4], 1);
  state.sequence_length = integer_from(values[5], 1);
  state.shuffle = values[6].as_boolean();
  state.data_digest = digest_of(values[7]);
  state.data_tokens = integer_from(values[8], 1);
  state.optimizer = word_of(values[9], {"adamw", "adam", "lion", "sgd"});
  state.state_recipe = name_of_recipe(values[10]);
  state.dtype = word_of(values[11], {"fp32", "bf16", "fp16"});
  state.scalars = scalars_of(values[12]);
  return state;
}

}  // namespace strata::train
