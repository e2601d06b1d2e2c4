// The spread of a value: how it relates to the same value on the other ranks of one axis of the
// mesh. Each operation has a rule that derives the spreads of its outputs from those of its inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace strata::kernels {

struct Spread {
  enum class Kind : std::uint8_t {
    replicated,   ///< every rank has all of it
    sharded,      ///< every rank has its part of it, cut along one dimension
    partial_sum,  ///< the value is the sum of what the ranks have
    zeros,        ///< all zeros, which fit as any of these
  } kind = Kind::replicated;
  std::int8_t dimension = -1;  ///< sharded: which one is cut

  bool operator==(const Spread&) const = default;
};
inline constexpr Spread kReplicated{};
inline constexpr Spread kPartialSum{Spread::Kind::partial_sum};
inline constexpr Spread kZeros{Spread::Kind::zeros};
constexpr Spread sharded(int dimension) {
  return {Spread::Kind::sharded, static_cast<std::int8_t>(dimension)};
}

/// An operand whose spread does not fit the others, and the spread that would.
struct Misfit {
  int operand = 0;
  Spread expected;
};

/// The rule of linear operations: all operands and outputs have one spread; without operands,
/// zeros.
inline constexpr const char* kAlike = "=";

/// Fills `outputs` by an operation's rule. A rule gives each dimension of each operand a letter,
/// inputs before outputs: "nk,mk,+m->nm" is that of linear. If an input is cut along a letter,
/// every input with that letter must be cut along it, and the others must be replicated. An output
/// with the letter is cut along it; any other output is a partial sum, because each rank has added
/// up only its part. A dimension with no letter, or with '.', may not be cut. An input may not be a
/// partial sum, unless it is marked '+': that one is added to the first output and must be a
/// partial sum exactly if the output is. An input marked '*' may be cut in any way: the operation
/// reads only what all ranks have alike. Returns the first input that does not fit, those with '+'
/// last.
std::optional<Misfit> spread_outputs(std::string_view rule, std::span<const Spread> inputs,
                                     std::span<Spread> outputs);

}  // namespace strata::kernels
