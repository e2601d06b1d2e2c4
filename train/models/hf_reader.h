// Reads members of a Hugging Face config.json; absent and null ones have their class's defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"

namespace strata::train {

// The limits keep products of sizes within 64 bits, and token ids within 32.
inline constexpr std::int64_t kLargestVocabulary = (std::int64_t{1} << 31) - 256;
inline constexpr std::int64_t kLargestContext = std::int64_t{1} << 31;
inline constexpr std::int64_t kLargestWidth = std::int64_t{1} << 24;
inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 16;

class HfReader {
 public:
  /// `object` must be a JSON object. Messages name file, line and path.
  explicit HfReader(const JsonValue& object);

  /// Returns a whole number in [1, limit]. Without a fallback the key is required.
  [[nodiscard]] std::int64_t size(std::string_view key, std::int64_t limit,
                                  std::optional<std::int64_t> fallback = std::nullopt) const;
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  /// Returns a finite number in [lowest, highest].
  [[nodiscard]] double number(std::string_view key, double fallback, double lowest,
                              double highest) const;
  [[nodiscard]] std::string text(std::string_view key, const std::string& fallback) const;
  /// Returns the member, unless it is absent or null.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;
  /// Throws, giving the reason, unless the flag is `wanted`.
  void require_flag(std::string_view key, bool wanted, const std::string& why) const;
  /// Throws unless the number of heads divides the hidden size.
  void require_divisor(std::string_view key, std::int64_t heads, std::int64_t hidden) const;
  /// Throws at the key's line ("file:line: key: message"), or at the object's if the key is absent.
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  [[nodiscard]] const JsonValue& object() const { return object_; }

 private:
  JsonValue object_;
};

}  // namespace strata::train
