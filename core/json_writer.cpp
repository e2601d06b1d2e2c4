#include "core/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstddef>

#include "core/check.h"
#include "core/utf8.h"

namespace strata {

std::string quoted_json(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    const std::size_t size = utf8_character_size(text);
    if (size == 0) {
      out += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += text[0];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20) {
      ((out += "\\u00") += kHex[c >> 4]) += kHex[c & 15];
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out + '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  STRATA_CHECK(error == std::errc());
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // reads back as real
  return text;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  STRATA_CHECK(!levels_.empty() && levels_.back().close == '}' && !after_key_, "key", name);
  separate();
  out_ += quoted_json(name);
  out_ += indent_ > 0 ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::scalar(std::string_view text) {
  separate();
  out_ += text;
  return *this;
}

JsonWriter& JsonWriter::begin(char open) {
  separate();
  out_ += open;
  levels_.push_back({open == '{' ? '}' : ']', true});
  return *this;
}

JsonWriter& JsonWriter::begin_row() {
  begin('[');
  levels_.back().row = true;
  return *this;
}

JsonWriter& JsonWriter::end(char close) {
  STRATA_CHECK(!levels_.empty() && levels_.back().close == close && !after_key_);
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.row) new_line();
  out_ += close;
  return *this;
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) {
    STRATA_CHECK(out_.empty(), "a JSON document holds one value");
    return;
  }
  Level& level = levels_.back();
  if (!level.empty) out_ += level.row && indent_ > 0 ? ", " : ",";
  level.empty = false;
  if (!level.row) new_line();
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(levels_.size() * static_cast<std::size_t>(indent_), ' ');
}

JsonWriter& JsonWriter::value(const JsonValue& v) {
  switch (v.kind()) {
    case JsonKind::null:
      return null();
    case JsonKind::boolean:
      return value(v.as_boolean());
    case JsonKind::integer:
      return value(v.as_integer());
    case JsonKind::real:
      return value(v.as_number());
    case JsonKind::string:
      return value(v.as_string());
    case JsonKind::array:
      begin_array();
      for (const JsonValue& element : v.elements()) value(element);
      return end_array();
    case JsonKind::object:
      begin_object();
      for (const auto& [name, member_value] : v.members()) key(name).value(member_value);
      return end_object();
  }
  return *this;
}

std::string JsonWriter::finish() {
  STRATA_CHECK(levels_.empty() && !out_.empty(), "unfinished JSON");
  return std::move(out_);
}

std::string to_string(const JsonValue& value, int indent) {
  return JsonWriter(indent).value(value).finish();
}

}  // namespace strata
