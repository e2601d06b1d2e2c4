// Static arguments of an operation: a few named numbers. They are sorted by name, so equal sets
// print, compare and hash (fingerprint) alike.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::kernels {

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string_view, double>> items) {
    for (const auto& [name, value] : items) set(name, value);
  }

  void set(std::string_view name, double value);
  [[nodiscard]] bool has(std::string_view name) const;
  /// Returns the number under `name`. Throws InvalidArgument when there is none.
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name, double otherwise) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& items() const { return items_; }
  bool operator==(const Attributes&) const = default;
  /// "eps=1e-05 sequence=256", in name order.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::pair<std::string, double>> items_;
};

}  // namespace strata::kernels
