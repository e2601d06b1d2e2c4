// Storage of JsonValue: nodes in file order, all text in one string. Private to json*.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace strata {

struct JsonNode {
  static constexpr std::uint32_t kNone = 0xffffffffU;

  JsonKind kind = JsonKind::null;
  std::int32_t line = 1;
  std::uint32_t parent = kNone;
  std::uint32_t next_sibling = kNone;
  std::uint32_t first_child = kNone;
  std::uint32_t child_count = 0;
  std::uint32_t position = 0;    ///< index among its siblings
  std::uint32_t key_offset = 0;  ///< offset of the member's key in JsonDocument::text
  std::uint32_t key_size = 0;
  std::uint32_t text_offset = 0;  ///< offset of a string's characters in JsonDocument::text
  std::uint32_t text_size = 0;
  union {
    bool boolean;
    std::int64_t integer = 0;
    double real;
  };
};

struct JsonDocument {
  std::string file;
  JsonFault fault = JsonFault::data;
  std::vector<JsonNode> nodes;  ///< element 0 is the document's value
  std::string text;

  [[nodiscard]] std::string_view key_of(const JsonNode& node) const {
    return std::string_view(text).substr(node.key_offset, node.key_size);
  }
  [[nodiscard]] std::string_view text_of(const JsonNode& node) const {
    return std::string_view(text).substr(node.text_offset, node.text_size);
  }
  [[nodiscard]] std::string path_of(std::uint32_t index) const;
};

/// Throws DataError or ConfigError, as `fault` says.
[[noreturn]] void throw_json_fault(JsonFault fault, const std::string& message);

}  // namespace strata
