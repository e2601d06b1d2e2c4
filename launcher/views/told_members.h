// Members of what a run tells: another version of mlaunch may lack one, or tell something else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"

namespace strata::launcher {

/// Returns a member of `object`; nullopt: it is absent or null.
inline std::optional<JsonValue> told_member(const JsonValue& object, std::string_view name) {
  auto value = object.find(name);
  if (value && value->is(JsonKind::null)) value.reset();
  return value;
}

/// Returns a member that is a string; "": there is none.
inline std::string told_text(const JsonValue& object, std::string_view name) {
  const auto value = object.find(name);
  return value && value->is(JsonKind::string) ? value->as_string() : "";
}

/// Returns true for a member that is true; false: it is not, or there is none.
inline bool told_true(const JsonValue& object, std::string_view name) {
  const auto value = object.find(name);
  return value && value->is(JsonKind::boolean) && value->as_boolean();
}

inline std::optional<std::int64_t> told_integer(const JsonValue& object, std::string_view name) {
  const auto value = object.find(name);
  return value && value->is(JsonKind::integer) ? std::optional(value->as_integer()) : std::nullopt;
}

inline std::optional<double> told_number(const JsonValue& object, std::string_view name) {
  const auto value = object.find(name);
  return value && value->is_number() ? std::optional(value->as_number()) : std::nullopt;
}

}  // namespace strata::launcher
