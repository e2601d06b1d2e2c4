// JSON as read from a file: an immutable tree in which every value knows its line and its path, so
// that whoever finds fault with a value can say where it stands. (nlohmann's parser keeps no
// positions, knows no '#' comments or trailing commas, and lets the last of two equal keys win.)
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

/// Which exception a faulty document becomes.
enum class JsonFault : std::uint8_t { data, configuration };

struct JsonOptions {
  bool allow_comments = false;         ///< from // or # to the end of the line, and /* ... */
  bool allow_trailing_commas = false;  ///< before ] and }
  bool allow_infinity = false;         ///< Infinity, as Python writes it
  JsonFault fault = JsonFault::data;   ///< DataError or ConfigError
  int depth_limit = 64;                ///< nested arrays and objects
  std::int64_t size_limit_bytes = std::int64_t{64} << 20;
};

struct JsonDocument;

/// One value of a document; a cheap handle that keeps the document alive. Accessors of the wrong
/// kind throw the document's error, naming file, line, path, found kind and expected kind.
class JsonValue {
 public:
  [[nodiscard]] JsonKind kind() const;
  [[nodiscard]] bool is(JsonKind expected) const { return kind() == expected; }
  /// An integer or a real number.
  [[nodiscard]] bool is_number() const { return is(JsonKind::integer) || is(JsonKind::real); }

  [[nodiscard]] bool as_boolean() const;
  /// An integer literal. Literals outside of int64 are real numbers.
  [[nodiscard]] std::int64_t as_integer() const;
  /// An integer, or a real number without fraction such as 5e8.
  [[nodiscard]] std::int64_t as_whole_number() const;
  /// An integer (rounded to nearest) or a real number.
  [[nodiscard]] double as_number() const;
  /// Valid UTF-8 (which may contain NUL).
  [[nodiscard]] std::string as_string() const;

  /// Number of elements of an array or members of an object.
  [[nodiscard]] std::int64_t size() const;
  /// The values of an array.
  [[nodiscard]] std::vector<JsonValue> elements() const;
  /// The members of an object, in the order of the file.
  [[nodiscard]] std::vector<std::pair<std::string, JsonValue>> members() const;
  /// The member of an object, if it has one of that name (linear search).
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;
  /// The same; a missing member is an error.
  [[nodiscard]] JsonValue at(std::string_view key) const;

  [[nodiscard]] const std::string& file() const;
  [[nodiscard]] int line() const;
  /// "zero_optimization.stage", "betas[1]"; the document itself is "top level".
  [[nodiscard]] std::string path() const;
  /// "string \"two\"", "integer 3", "array of 2": for messages.
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

/// Strict RFC 8259 but for what `options` allow. `file` is the name used in messages. Errors say
/// "file:line: ..."; equal keys of one object are an error that names all of them with their lines.
JsonValue parse_json(std::string_view text, const std::string& file, const JsonOptions& options);

/// Reads and parses. A file that cannot be read, or is too large, is the same kind of error.
JsonValue read_json_file(const std::string& path, const JsonOptions& options);

}  // namespace strata
