// JSON values as words, with the tolerance that real files need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "train/config/key_table.h"

namespace strata::train {

/// "ds_config.json:12: optimizer.params.lr"
std::string place_of(const JsonValue& value);

/// A scalar as a word; "" for arrays, objects and null.
std::string word_of(const JsonValue& value);

/// Not an array or object.
bool is_scalar(const JsonValue& value);

/// Is the word in a list such as "false|none"?
bool is_one_of(std::string_view word, std::string_view list);

struct JsonWords {
  std::vector<std::string> words;
  std::string note;                   ///< a value that was bent, such as "3" for 3
  std::vector<std::string> problems;  ///< with place: found X, expected Y
};

/// The words of a value of this shape, which is no section; JsonShape::any: a scalar's word.
JsonWords words_of(const JsonValue& value, JsonShape shape);

}  // namespace strata::train
