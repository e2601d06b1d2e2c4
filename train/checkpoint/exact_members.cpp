#include "train/checkpoint/exact_members.h"

#include <fmt/core.h>
#include <algorithm>
#include <string>

namespace strata::train {

std::vector<JsonValue> exact_members(const JsonValue& object,
                                     std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : object.members())
    if (std::ranges::find(keys, key) == keys.end())
      value.fail("unknown key; a newer version of Strata may have written it");
  std::vector<JsonValue> values;
  for (const std::string_view key : keys) values.push_back(object.at(key));
  return values;
}

void require_version(const JsonValue& object, std::string_view key, std::int64_t version,
                     std::string_view what) {
  const JsonValue found = object.at(key);
  if (found.as_integer() != version)
    found.fail(
        fmt::format("{} has format version {}, this program reads version {}; use the version of "
                    "Strata that wrote it",
                    what, found.as_integer(), version));
}

}  // namespace strata::train
