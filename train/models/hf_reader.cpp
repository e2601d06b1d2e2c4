#include "train/models/hf_reader.h"

#include <fmt/core.h>
#include <cmath>

#include "core/json_writer.h"

namespace strata::train {

HfReader::HfReader(const JsonValue& object) : object_(object) {
  if (!object.is(JsonKind::object)) {
    object.fail("found " + object.describe() + ", expected an object");
  }
}

std::optional<JsonValue> HfReader::find(std::string_view key) const {
  std::optional<JsonValue> value = object_.find(key);
  if (value && value->is(JsonKind::null)) return std::nullopt;
  return value;
}

std::int64_t HfReader::size(std::string_view key, std::int64_t limit,
                            std::optional<std::int64_t> fallback) const {
  const std::optional<JsonValue> value = find(key);
  if (!value) {
    if (fallback) return *fallback;
    fail(key, fmt::format("missing, expected a whole number from 1 to {}", limit));
  }
  const double number = value->is_number() ? value->as_number() : 0.0;
  if (!(number >= 1) || number > static_cast<double>(limit) || number != std::floor(number)) {
    fail(key,
         fmt::format("found {}, expected a whole number from 1 to {}", value->describe(), limit));
  }
  return value->as_whole_number();
}

bool HfReader::flag(std::string_view key, bool fallback) const {
  const std::optional<JsonValue> value = find(key);
  return value ? value->as_boolean() : fallback;
}

double HfReader::number(std::string_view key, double fallback, double lowest,
                        double highest) const {
  const std::optional<JsonValue> value = find(key);
  if (!value) return fallback;
  const double number = value->as_number();
  if (!(number >= lowest && number <= highest)) {
    fail(key, "found " + value->describe() + ", expected a number from " + json_number(lowest) +
                  " to " + json_number(highest));
  }
  return number;
}

std::string HfReader::text(std::string_view key, const std::string& fallback) const {
  const std::optional<JsonValue> value = find(key);
  return value ? value->as_string() : fallback;
}

void HfReader::require_flag(std::string_view key, bool wanted, const std::string& why) const {
  if (flag(key, wanted) != wanted) {
    fail(key, fmt::format("found {}, expected {}: {}", wanted ? "false" : "true",
                          wanted ? "true" : "false", why));
  }
}

void HfReader::require_divisor(std::string_view key, std::int64_t heads,
                               std::int64_t hidden) const {
  if (hidden % heads == 0) return;
  fail(key, fmt::format("found {} heads, expected a divisor of the hidden size {}", heads, hidden));
}

void HfReader::fail(std::string_view key, const std::string& message) const {
  const std::optional<JsonValue> value = object_.find(key);
  if (value) value->fail(message);
  object_.fail("key '" + std::string(key) + "': " + message);
}

}  // namespace strata::train
