// A number about a machine, with where it comes from.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace strata::machine {

/// Source of a number, weakest first.
enum class Source : std::uint8_t {
  assumed,     ///< typical of such machines
  given,       ///< typed on a command line
  data_sheet,  ///< published by the vendor
  measured,    ///< measured on this machine, or on one like it
};
/// "assumed", "given", "data sheet", "measured".
std::string_view name_of(Source source);

struct Figure {
  double value = 0;  ///< 0: not known
  Source source = Source::assumed;

  // Implicit, so that a Figure can be used as a number.
  constexpr operator double() const { return value; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] std::int64_t whole() const { return std::llround(value); }
  [[nodiscard]] constexpr bool known() const { return value > 0; }
  bool operator==(const Figure&) const = default;
};

constexpr Figure assumed(double value) { return {value, Source::assumed}; }
constexpr Figure given(double value) { return {value, Source::given}; }
constexpr Figure measured(double value) { return {value, Source::measured}; }

/// Returns the part of the rate `peak` that is reached; all of it if `share` is not known.
constexpr double reached(double peak, Figure share) { return share.known() ? peak * share : peak; }

}  // namespace strata::machine
