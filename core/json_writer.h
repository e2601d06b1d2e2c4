// Writer of JSON. Its output is stable: members keep the order given, and numbers have the shortest
// form that reads back as the same value.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"

namespace strata {

/// Returns `text` in double quotes, escaped; bytes that are not UTF-8 become U+FFFD.
std::string quoted_json(std::string_view text);

/// Shortest text that reads back as the same double, always with '.' or 'e'; "null" for NaN and
/// infinities, which JSON lacks.
std::string json_number(double value);

/// Builds one document. Misuse (a value without a key inside an object, an unclosed array) is a
/// broken invariant.
class JsonWriter {
 public:
  /// `indent` is in spaces per level, each element on its own line; 0: all on one line.
  explicit JsonWriter(int indent = 2) : indent_(indent) {}

  JsonWriter& begin_object() { return begin('{'); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array() { return begin('['); }
  /// Begins an array of scalars that stays on one line, whatever the indent.
  JsonWriter& begin_row();
  JsonWriter& end_array() { return end(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& null() { return scalar("null"); }
  JsonWriter& value(bool v) { return scalar(v ? "true" : "false"); }
  JsonWriter& value(double v) { return scalar(json_number(v)); }
  JsonWriter& value(std::string_view v) { return scalar(quoted_json(v)); }
  JsonWriter& value(const char* v) { return value(std::string_view(v)); }
  JsonWriter& value(const std::string& v) { return value(std::string_view(v)); }
  /// Writes a parsed value with all that it contains.
  JsonWriter& value(const JsonValue& v);
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonWriter& value(T v) { return scalar(std::to_string(v)); }
  /// Writes key and value of a member.
  template <typename T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  /// Returns the text, without a final newline. Everything must be closed.
  std::string finish();

 private:
  JsonWriter& begin(char open);
  JsonWriter& end(char close);
  JsonWriter& scalar(std::string_view text);
  void separate();
  void new_line();

  struct Level {
    char close;
    bool empty;
    bool row = false;
  };
  int indent_;
  std::vector<Level> levels_;
  bool after_key_ = false;
  std::string out_;
};

/// Returns the value as JSON text.
std::string to_string(const JsonValue& value, int indent = 2);

}  // namespace strata
