#include "train/checkpoint/exact_members.h"

#include <algorithm>

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

}  // namespace strata::train
