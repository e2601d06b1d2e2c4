// Members of a Hugging Face config.json with their class defaults: absent and null mean the
// default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"

namespace strata::train {

// Limits keep products of sizes inside 64 bits, and token ids inside 32.
inline constexpr std::int64_t kLargestVocabulary = (std::int64_t{1} << 31) - 256;
inline constexpr std::int64_t kLargestContext = std::int64_t{1} << 31;
inline constexpr std::int64_t kLargestWidth = std::int64_t{1} << 24;
inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 16;

class HfReader {
 public:
  /// `object` must be an object. Messages name file, line and path.
  explicit HfReader(const JsonValue& object);

  /// A whole number in [1, limit]. No fallback: the key must be there.
  [[nodiscard]] std::int64_t size(std::string_view key, std::int64_t limit,
                                  std::optional<std::int64_t> fallback = std::nullopt) const;
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  /// A finite number in [lowest, highest].
  [[nodiscard]] double number(std::string_view key, double fallback, double lowest,
                              double highest) const;
  [[nodiscard]] std::string text(std::string_view key, const std::string& fallback) const;
  /// The member, unless it is absent or null.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;
  /// Refuses a flag that is not `wanted`, saying why.
  void require_flag(std::string_view key, bool wanted, const std::string& why) const;
  /// Refuses a number of heads that does not divide the hidden size.
  void require_divisor(std::string_view key, std::int64_t heads, std::int64_t hidden) const;
  /// Throws at the key's line ("file:line: key: message"), or at the object's when it is absent.
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  [[nodiscard]] const JsonValue& object() const { return object_; }

 private:
  JsonValue object_;
};

}  // namespace strata::train
