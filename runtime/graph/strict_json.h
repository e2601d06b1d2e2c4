// Reads JSON strictly: what differs from what is expected is the document's error.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace strata::runtime {

/// Throws unless `object` has all `keys`, and no others except `optional` ones.
inline void expect_keys(const JsonValue& object, const std::vector<std::string_view>& keys,
                        const std::vector<std::string_view>& optional = {}) {
  std::vector<std::string_view> all = keys;
  all.insert(all.end(), optional.begin(), optional.end());
  std::string known;
  for (std::string_view key : all) known += (known.empty() ? "" : ", ") + std::string(key);
  for (const auto& [key, value] : object.members())
    if (std::find(all.begin(), all.end(), key) == all.end())
      value.fail("unknown key, expected one of " + known);
  for (std::string_view key : keys) static_cast<void>(object.at(key));
}

[[noreturn]] inline void refuse(const JsonValue& value, const std::string& expected) {
  value.fail("expected " + expected + ", found " + value.describe());
}

inline int number(const JsonValue& value, std::int64_t least, std::int64_t most) {
  const std::int64_t found = value.as_integer();
  if (found < least || found > most)
    refuse(value, fmt::format("an integer from {} to {}", least, most));
  return static_cast<int>(found);
}

template <typename Named, std::size_t kCount>
Named one_of(const JsonValue& value, const std::array<Named, kCount>& choices) {
  const std::string found = value.as_string();
  std::string known;
  for (Named choice : choices) {
    if (name_of(choice) == found) return choice;
    known += (known.empty() ? "" : ", ") + std::string(name_of(choice));
  }
  refuse(value, "one of " + known);
}

}  // namespace strata::runtime
