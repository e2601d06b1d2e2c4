// Turns JSON values into words, with the tolerance that real files need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "train/config/key_table.h"

namespace strata::train {

/// The place of a value for messages: "ds_config.json:12: optimizer.params.lr".
std::string place_of(const JsonValue& value);

/// The word of a scalar; "" for arrays, objects and null.
std::string word_of(const JsonValue& value);

/// True unless the value is an array or an object.
bool is_scalar(const JsonValue& value);

/// True if the word is in a list such as "false|none".
bool is_one_of(std::string_view word, std::string_view list);

struct JsonWords {
  std::vector<std::string> words;
  std::string note;                   ///< reports a value that was converted, such as "3" to 3
  std::vector<std::string> problems;  ///< each with place: found X, expected Y
};

/// The words of a value of this shape, not a section. JsonShape::any: a scalar's word.
JsonWords words_of(const JsonValue& value, JsonShape shape);

}  // namespace strata::train
