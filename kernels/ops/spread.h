// How a value relates to the same value on the other ranks of one axis of the mesh, and how an
// operation hands that on from its inputs to its outputs.
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
    zeros,        ///< any of these
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

/// An operand that does not fit the others, and what would.
struct Misfit {
  int operand = 0;
  Spread expected;
};

/// Linear operations: all operands alike, sums too, and outputs as they are; of none, zeros.
inline constexpr const char* kAlike = "=";

/// Fills `outputs` by an operation's rule, which gives each dimension of each operand a letter:
/// "nk,mk,+m->nm" of linear, inputs before outputs. When an input is cut along a letter, all that
/// have it must be, and the others are replicated. An output that has it is cut along it; any other
/// is a partial sum, for each rank has added up its part of what is cut. No dimension that has no
/// letter, or the letter '.', may be cut, and no input may be a partial sum, but for those with
/// '+': they are added to the first output and are one where it is one. Of those with '*' only what
/// all ranks have alike is read: they may be cut in any way. Returns the first input that does not
/// fit, those with '+' last.
std::optional<Misfit> spread_outputs(std::string_view rule, std::span<const Spread> inputs,
                                     std::span<Spread> outputs);

}  // namespace strata::kernels
