// A number about a machine, with where it comes from.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace strata::machine {

/// Weakest first.
enum class Source : std::uint8_t {
  assumed,     ///< typical of such machines
  data_sheet,  ///< as the vendor publishes it
  measured,    ///< on this very machine, or on one like it
};
/// "assumed", "data sheet", "measured".
std::string_view name_of(Source source);

struct Figure {
  double value = 0;  ///< 0: not known
  Source source = Source::assumed;

  // A Figure reads as a number wherever one is needed.
  constexpr operator double() const { return value; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] std::int64_t whole() const { return std::llround(value); }
  [[nodiscard]] constexpr bool known() const { return value > 0; }
  bool operator==(const Figure&) const = default;
};

constexpr Figure assumed(double value) { return {value, Source::assumed}; }
constexpr Figure measured(double value) { return {value, Source::measured}; }

}  // namespace strata::machine
