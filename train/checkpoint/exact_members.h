// Checks JSON objects with fixed keys, as in a checkpoint's own files.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace strata::train {

/// Returns the members of an object that must have exactly these keys, in the order of `keys`;
/// throws the document's error for a missing or unknown key.
std::vector<JsonValue> exact_members(const JsonValue& object,
                                     std::initializer_list<std::string_view> keys);

/// Throws unless member `key` is `version`. Call it before exact_members, which would complain
/// about keys of another version. `what`: "the checkpoint".
void require_version(const JsonValue& object, std::string_view key, std::int64_t version,
                     std::string_view what);

}  // namespace strata::train
