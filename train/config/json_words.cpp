#include "train/config/json_words.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/json_writer.h"
#include "train/config/settings.h"
#include "train/config/template_token.h"

namespace strata::train {
namespace {

std::string wrong_shape(const JsonValue& value, const std::string& expected) {
  const bool token = value.is(JsonKind::string) && is_template_token(value.as_string());
  return place_of(value) + ": found " + value.describe() + ", expected " + expected +
         (token ? " (an unfilled template token)" : "");
}

JsonWords flag_words(const JsonValue& value) {
  const std::string word = word_of(value);
  if (value.is(JsonKind::boolean)) return {{word}, "", {}};
  if (!is_scalar(value) || !is_one_of(word, "true|false|0|1")) {
    return {{}, "", {wrong_shape(value, "true or false")}};
  }
  const std::string flag = is_one_of(word, "true|1") ? "true" : "false";
  return {{flag}, "found " + value.describe() + ", taken as " + flag, {}};
}

JsonWords number_words(const JsonValue& value) {
  std::string word = word_of(value);
  if (value.is_number()) return {{word}, "", {}};
  double number = 0;
  if (value.is(JsonKind::boolean)) word = value.as_boolean() ? "1" : "0";
  if (!parse_number(word, number)) return {{}, "", {wrong_shape(value, "a number")}};
  return {{word}, "found " + value.describe() + ", taken as the number " + word, {}};
}

JsonWords list_words(const JsonValue& value) {
  JsonWords result;
  if (!value.is(JsonKind::array)) return {{}, "", {wrong_shape(value, "an array of numbers")}};
  for (const JsonValue& element : value.elements()) {
    const JsonWords one = number_words(element);
    result.words.insert(result.words.end(), one.words.begin(), one.words.end());
    result.problems.insert(result.problems.end(), one.problems.begin(), one.problems.end());
    if (!one.note.empty()) result.note = one.note;
  }
  return result;
}

JsonWords text_words(const JsonValue& value) {
  if (value.is(JsonKind::string)) return {{value.as_string()}, "", {}};
  JsonWords result;
  if (!value.is(JsonKind::array)) return {{}, "", {wrong_shape(value, "an array of strings")}};
  for (const JsonValue& element : value.elements()) {
    if (element.is(JsonKind::string)) {
      result.words.push_back(element.as_string());
    } else {
      result.problems.push_back(wrong_shape(element, "a string"));
    }
  }
  return result;
}

}  // namespace

std::string place_of(const JsonValue& value) {
  return fmt::format("{}:{}: {}", value.file(), value.line(), value.path());
}

std::string word_of(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::boolean:
      return value.as_boolean() ? "true" : "false";
    case JsonKind::integer:
      return std::to_string(value.as_integer());
    case JsonKind::real:
      return std::isinf(value.as_number()) ? "Infinity" : json_number(value.as_number());
    case JsonKind::string:
      return value.as_string();
    default:
      return "";
  }
}

bool is_scalar(const JsonValue& value) {
  return !value.is(JsonKind::object) && !value.is(JsonKind::array);
}

bool is_one_of(std::string_view word, std::string_view list) {
  while (!list.empty()) {
    const std::size_t bar = list.find('|');
    if (same_word(word, list.substr(0, bar))) return true;
    list = bar == std::string_view::npos ? "" : list.substr(bar + 1);
  }
  return false;
}

JsonWords words_of(const JsonValue& value, JsonShape shape) {
  switch (shape) {
    case JsonShape::flag:
      return flag_words(value);
    case JsonShape::number:
      return number_words(value);
    case JsonShape::list:
      return list_words(value);
    case JsonShape::texts:
      return text_words(value);
    case JsonShape::tree:
      if (!value.is(JsonKind::array)) return {{}, "", {wrong_shape(value, "an array of objects")}};
      return {{to_string(value, 0)}, "", {}};
    case JsonShape::size:
      if (value.is_number() || value.is(JsonKind::string)) break;
      return {{}, "", {wrong_shape(value, "bytes, or a string such as \"24GB\"")}};
    case JsonShape::text:
      if (!value.is(JsonKind::string)) return {{}, "", {wrong_shape(value, "a string")}};
      break;
    default:
      break;
  }
  return {{word_of(value)}, "", {}};
}

}  // namespace strata::train
