// JSON read from a file: an immutable tree in which every value knows its line and its path, so
// that an error about a value can say where it stands. (nlohmann's parser keeps no positions, knows
// no '#' comments or trailing commas, and lets the last of two equal keys win.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

enum class JsonKind : std::uint8_t { null, boolean, integer, real, string, array, object };

/// "null", "boolean", "integer", "real number", "string", "array", "object".
std::string_view name_of(JsonKind kind);

/// The exception that a faulty document becomes.
enum class JsonFault : std::uint8_t { data, configuration };

struct JsonOptions {
  bool allow_comments = false;         ///< comments: // and # to the end of the line, /* ... */
  bool allow_trailing_commas = false;  ///< commas before ] and }
  bool allow_infinity = false;         ///< Infinity, as Python writes it
  JsonFault fault = JsonFault::data;   ///< DataError or ConfigError
  int depth_limit = 64;                ///< nesting depth of arrays and objects
  std::int64_t size_limit_bytes = std::int64_t{64} << 20;
};

struct JsonDocument;

/// One value of a document: a cheap handle that keeps the document alive. Accessors of the wrong
/// kind throw the document's error, which names file, line, path, found kind and expected kind.
class JsonValue {
 public:
  [[nodiscard]] JsonKind kind() const;
  [[nodiscard]] bool is(JsonKind expected) const { return kind() == expected; }
  /// True for an integer or a real number.
  [[nodiscard]] bool is_number() const { return is(JsonKind::integer) || is(JsonKind::real); }

  [[nodiscard]] bool as_boolean() const;
  /// Accepts integer literals. Literals outside int64 are real numbers.
  [[nodiscard]] std::int64_t as_integer() const;
  /// Accepts an integer, or a real number without a fraction such as 5e8.
  [[nodiscard]] std::int64_t as_whole_number() const;
  /// Accepts an integer (rounded to the nearest double) or a real number.
  [[nodiscard]] double as_number() const;
  /// Valid UTF-8, which may contain NUL.
  [[nodiscard]] std::string as_string() const;

  /// Number of elements of an array, or of members of an object.
  [[nodiscard]] std::int64_t size() const;
  /// Elements of an array, in order.
  [[nodiscard]] std::vector<JsonValue> elements() const;
  /// Members of an object, in the order of the file.
  [[nodiscard]] std::vector<std::pair<std::string, JsonValue>> members() const;
  /// Finds a member of an object by name (linear search).
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;
  /// Finds a member of an object; a missing one is an error.
  [[nodiscard]] JsonValue at(std::string_view key) const;

  [[nodiscard]] const std::string& file() const;
  [[nodiscard]] int line() const;
  /// Path from the top: "zero_optimization.stage", "betas[1]"; the document itself is "top level".
  [[nodiscard]] std::string path() const;
  /// Kind and value for messages: "string \"two\"", "integer 3", "array of 2".
  [[nodiscard]] std::string describe() const;
  /// Throws the document's error: "file:line: path: message".
  [[noreturn]] void fail(const std::string& message) const;

 private:
  friend JsonValue parse_json(std::string_view, const std::string&, const JsonOptions&);
  JsonValue(std::shared_ptr<const JsonDocument> document, std::uint32_t index)
      : document_(std::move(document)), index_(index) {}
  void expect(JsonKind expected) const;
  [[noreturn]] void fail_kind(std::string_view expected) const;

  std::shared_ptr<const JsonDocument> document_;
  std::uint32_t index_ = 0;
};

/// Parses strict RFC 8259, plus what `options` allow. Messages begin "file:line: ". Equal keys of
/// one object are an error that names all of them with their lines.
JsonValue parse_json(std::string_view text, const std::string& file, const JsonOptions& options);

/// Reads a file and parses it. A file that is unreadable or too large throws the document's error.
JsonValue read_json_file(const std::string& path, const JsonOptions& options);

}  // namespace strata
