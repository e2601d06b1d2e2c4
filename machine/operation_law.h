// The law of an operation's time: a part that is always there, one per FLOP and one per byte,
// fitted to measured kinds of its instructions.
#pragma once

#include <optional>
#include <span>

namespace strata::machine {

/// The work of an instruction: its arithmetic, and the bytes that it reads, writes or sends.
struct Work {
  double flops = 0;
  double bytes = 0;
  bool operator==(const Work&) const = default;
};

/// A measured instruction.
struct WorkTime {
  Work work;
  double ns = 0;  ///< > 0
};

struct OperationLaw {
  double fixed_ns = 0;
  double ns_per_flop = 0;
  double ns_per_byte = 0;

  [[nodiscard]] double ns(const Work& work) const {
    return fixed_ns + ns_per_flop * work.flops + ns_per_byte * work.bytes;
  }
  bool operator==(const OperationLaw&) const = default;
};

/// Fits a law whose three parts are 0 or more to what was measured, by least squares of relative
/// errors, so that short instructions count as much as long ones; errors are over the square root
/// of the ratio of both times, so that twice and half of what was measured count alike. nullopt:
/// fewer than kLeastKindsOfLaw kinds with known work are given, which say too little of three
/// parts.
std::optional<OperationLaw> fit_law(std::span<const WorkTime> measured);

inline constexpr int kLeastKindsOfLaw = 4;

}  // namespace strata::machine
