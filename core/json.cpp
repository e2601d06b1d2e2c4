#include "core/json.h"

#include <fmt/core.h>
#include <cmath>
#include <cstddef>

#include "core/error.h"
#include "core/file.h"
#include "core/json_document.h"
#include "core/json_writer.h"

namespace strata {
namespace {

bool is_plain_key(std::string_view key) {
  if (key.empty()) return false;
  for (const char c : key) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
    if (!plain) return false;
  }
  return true;
}

/// Quotes `text` for a message; cuts long texts.
std::string shortened(std::string_view text) {
  constexpr std::size_t kLimit = 60;
  if (text.size() <= kLimit) return quoted_json(text);
  return quoted_json(text.substr(0, kLimit)) + "...";
}

}  // namespace

std::string_view name_of(JsonKind kind) {
  switch (kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return "boolean";
    case JsonKind::integer:
      return "integer";
    case JsonKind::real:
      return "real number";
    case JsonKind::string:
      return "string";
    case JsonKind::array:
      return "array";
    case JsonKind::object:
      return "object";
  }
  return "?";
}

void throw_json_fault(JsonFault fault, const std::string& message) {
  if (fault == JsonFault::configuration) throw ConfigError(message);
  throw DataError(message);
}

std::string JsonDocument::path_of(std::uint32_t index) const {
  std::vector<std::uint32_t> way;
  for (; nodes[index].parent != JsonNode::kNone; index = nodes[index].parent) way.push_back(index);
  if (way.empty()) return "top level";
  std::string path;
  for (auto it = way.rbegin(); it != way.rend(); ++it) {
    const JsonNode& node = nodes[*it];
    if (nodes[node.parent].kind == JsonKind::array) {
      path += fmt::format("[{}]", node.position);
    } else if (is_plain_key(key_of(node))) {
      path += (path.empty() ? "" : ".") + std::string(key_of(node));
    } else {
      path += "[" + shortened(key_of(node)) + "]";
    }
  }
  return path;
}

JsonKind JsonValue::kind() const { return document_->nodes[index_].kind; }
const std::string& JsonValue::file() const { return document_->file; }
int JsonValue::line() const { return document_->nodes[index_].line; }
std::string JsonValue::path() const { return document_->path_of(index_); }

std::string JsonValue::describe() const {
  const JsonNode& node = document_->nodes[index_];
  const std::string name(name_of(node.kind));
  switch (node.kind) {
    case JsonKind::null:
      return name;
    case JsonKind::boolean:
      return name + (node.boolean ? " true" : " false");
    case JsonKind::integer:
      return fmt::format("{} {}", name, node.integer);
    case JsonKind::real:
      return name + " " + json_number(node.real);
    case JsonKind::string:
      return name + " " + shortened(document_->text_of(node));
    case JsonKind::array:
    case JsonKind::object:
      return fmt::format("{} of {}", name, node.child_count);
  }
  return name;
}

void JsonValue::fail(const std::string& message) const {
  throw_json_fault(document_->fault, fmt::format("{}:{}: {}: {}", file(), line(), path(), message));
}

void JsonValue::fail_kind(std::string_view expected) const {
  fail("expected " + std::string(expected) + ", found " + describe());
}

void JsonValue::expect(JsonKind expected) const {
  if (!is(expected)) fail_kind(name_of(expected));
}

bool JsonValue::as_boolean() const {
  expect(JsonKind::boolean);
  return document_->nodes[index_].boolean;
}

std::int64_t JsonValue::as_integer() const {
  expect(JsonKind::integer);
  return document_->nodes[index_].integer;
}

std::int64_t JsonValue::as_whole_number() const {
  if (is(JsonKind::integer)) return as_integer();
  if (!is(JsonKind::real)) fail_kind("whole number");
  const double value = document_->nodes[index_].real;
  // The bounds are exact: -2^63 is representable, and 2^63 is the first double that is too large.
  if (value != std::floor(value) || value < -0x1p63 || value >= 0x1p63) fail_kind("whole number");
  return static_cast<std::int64_t>(value);
}

double JsonValue::as_number() const {
  if (is(JsonKind::integer)) return static_cast<double>(as_integer());
  if (!is(JsonKind::real)) fail_kind("number");
  return document_->nodes[index_].real;
}

std::string JsonValue::as_string() const {
  expect(JsonKind::string);
  return std::string(document_->text_of(document_->nodes[index_]));
}

std::int64_t JsonValue::size() const {
  if (!is(JsonKind::array) && !is(JsonKind::object)) fail_kind("array or object");
  return document_->nodes[index_].child_count;
}

std::vector<JsonValue> JsonValue::elements() const {
  expect(JsonKind::array);
  const auto& nodes = document_->nodes;
  std::vector<JsonValue> result;
  result.reserve(nodes[index_].child_count);
  for (auto i = nodes[index_].first_child; i != JsonNode::kNone; i = nodes[i].next_sibling)
    result.push_back(JsonValue(document_, i));
  return result;
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  expect(JsonKind::object);
  const auto& nodes = document_->nodes;
  std::vector<std::pair<std::string, JsonValue>> result;
  result.reserve(nodes[index_].child_count);
  for (auto i = nodes[index_].first_child; i != JsonNode::kNone; i = nodes[i].next_sibling)
    result.emplace_back(std::string(document_->key_of(nodes[i])), JsonValue(document_, i));
  return result;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  expect(JsonKind::object);
  const auto& nodes = document_->nodes;
  for (auto i = nodes[index_].first_child; i != JsonNode::kNone; i = nodes[i].next_sibling)
    if (document_->key_of(nodes[i]) == key) return JsonValue(document_, i);
  return std::nullopt;
}

JsonValue JsonValue::at(std::string_view key) const {
  if (auto value = find(key)) return *value;
  fail("misses the key " + quoted_json(key));
}

JsonValue read_json_file(const std::string& path, const JsonOptions& options) {
  std::string text;
  try {
    text = read_whole_file(path, options.size_limit_bytes);
  } catch (const Error& error) {
    throw_json_fault(options.fault, error.what());
  }
  return parse_json(text, path, options);
}

}  // namespace strata
