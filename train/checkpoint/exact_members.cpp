#include "train/checkpoint/exact_members.h"

#include <algorithm>
#include <string>

namespace strata::train {

std::vector<JsonValue> exact_members(const JsonValue& object,
                                     std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : object.members())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      value.fail("unknown key; a newer version of Strata may have written it");
  std::vector<JsonValue> values;
  for (const std::string_view key : keys) values.push_back(object.at(key));
  return values;
}

void require_version(const JsonValue& object, std::string_view key, std::int64_t version,
                     std::string_view what) {
  const JsonValue found = object.at(key);
  if (found.as_integer() != version)
    found.fail(std::string(what) + " has format version " + std::to_string(found.as_integer()) +
               ", this program reads version " + std::to_string(version) +
               "; use the version of Strata that wrote it");
}

}  // namespace strata::train
