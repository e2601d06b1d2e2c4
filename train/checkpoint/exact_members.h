// JSON objects of fixed keys, as a checkpoint's own files have them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace strata::train {

/// Members of an object that must have exactly these keys, in the order of `keys`; a missing or
/// unknown one is the document's error.
std::vector<JsonValue> exact_members(const JsonValue& object,
                                     std::initializer_list<std::string_view> keys);

/// Refuses a document whose member `key` is another number than `version`; before exact_members,
/// which would complain of keys that another version has. `what`: "the checkpoint".
void require_version(const JsonValue& object, std::string_view key, std::int64_t version,
                     std::string_view what);

}  // namespace strata::train
